"""Decodes that share their forward passes.

A decode stays what it is, one sequence and one call after another. Here each runs in a thread of
its own and asks a *seat* instead of the model; when every seat has asked, one pass answers them
all. The threads take turns: exactly one runs at any time, so nothing that decodes share, such as a
vocabulary, is ever used by two of them at once.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from queue import SimpleQueue
from threading import Thread
from typing import Generic, TypeVar

import torch
from torch import Tensor

from c4.decode.commits import Predictor
from c4.models import Reading
from c4.models.batch import BatchDenoiser, Request
from c4.store.arrays import BoolArray, IntArray

T = TypeVar("T")
Job = Callable[[Predictor], T]
"""A decode, or whatever else asks a model for predictions."""


class Abandoned(BaseException):
    """Ends a decode whose batch was given up; no error, so no rule catches it by mistake."""


@dataclass(frozen=True)
class Finished(Generic[T]):
    """How a job ended."""

    result: T | None = None
    error: BaseException | None = None


class Seat(Generic[T]):
    """A predictor that one job asks, in a thread of its own, and that waits for its batch."""

    def __init__(self, denoiser: Predictor, job: Job[T]) -> None:
        self.mask_id, self.shift = denoiser.mask_id, denoiser.shift
        self._denoiser = denoiser
        self._asked: SimpleQueue[Request | Finished[T]] = SimpleQueue()
        self._answered: SimpleQueue[Tensor | None] = SimpleQueue()
        self._thread = Thread(target=self._run, args=(job,), daemon=True)
        self.request: Request | None = None
        """What the job waits for."""
        self.finished: Finished[T] | None = None

    def begin(self) -> None:
        """Run the job until it asks for the first time, or ends."""
        self._thread.start()
        self._listen()

    def go_on(self, answer: Tensor) -> None:
        """Answer the job, and run it until it asks again, or ends."""
        self._answered.put(answer)
        self._listen()

    def _listen(self) -> None:
        said = self._asked.get()
        if isinstance(said, Finished):
            self.request, self.finished = None, said
        else:
            self.request = said

    def leave(self) -> None:
        """End the job if it has not ended: what it asks next is not answered."""
        self._answered.put(None)
        if self._thread.ident is not None:
            self._thread.join()

    def _run(self, job: Job[T]) -> None:
        try:
            self._asked.put(Finished(job(self)))
        except BaseException as error:  # the batch raises it
            self._asked.put(Finished(error=error))

    def logits(
        self,
        ids: IntArray,
        start: int,
        *,
        positions: IntArray | None = None,
        attention: BoolArray | None = None,
    ) -> Tensor:
        self._asked.put(Request(ids, start, positions, attention))
        answer = self._answered.get()
        if answer is None:
            raise Abandoned
        return answer.to(torch.float32, copy=True)  # a copy: the rest of the pass may be freed

    def read(self, ids: IntArray, start: int) -> Reading:
        return self.interpret(self.logits(ids, start))

    def interpret(self, logits: Tensor) -> Reading:
        return self._denoiser.interpret(logits)


class Batch(Generic[T]):
    """Jobs that ask one model together. Iterating gives their results as they finish.

    A place that falls free is taken by the next job. After a job's error no other is begun; those
    under way are finished and their results given, and then the error is raised.
    """

    def __init__(self, model: BatchDenoiser, jobs: Iterator[Job[T]]) -> None:
        self.model = model
        self.jobs = jobs
        self._seats: list[Seat[T] | None] = [None] * model.size
        self._error: BaseException | None = None

    def __iter__(self) -> Iterator[T]:
        try:
            yield from self._fill()
            while any(self._seats):
                self._pass()
                yield from self._fill()
        finally:
            for seat in self._seats:
                if seat is not None:
                    seat.leave()
        if self._error is not None:
            raise self._error

    def _pass(self) -> None:
        """Answer every seat by one pass, and let each go on in its turn."""
        answers = self.model.logits([seat.request if seat else None for seat in self._seats])
        for place, seat in enumerate(self._seats):
            answer, answers[place] = answers[place], None
            if seat is not None and answer is not None:
                seat.go_on(answer)

    def _fill(self) -> Iterator[T]:
        """Results of the jobs that have ended; their places are given to the next."""
        for place in range(len(self._seats)):
            while (seat := self._seats[place]) is None or seat.finished:
                if seat is not None and seat.finished:
                    self._seats[place] = None
                    if seat.finished.error is None:
                        yield seat.finished.result  # type: ignore[misc]  # T may be None itself
                    self._error = self._error or seat.finished.error
                job = None if self._error is not None else next(self.jobs, None)
                if job is None:
                    break
                seat = self._seats[place] = Seat(self.model.denoiser, job)
                seat.begin()
