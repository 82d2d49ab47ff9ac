"""Decodes that share their forward passes.

Each decode is ordinary sequential code that runs in its own thread and calls a *seat* instead of
the model. When every seat has a request, one forward pass answers them all. The threads take turns:
exactly one runs at any time, so objects that decodes share, such as a vocabulary, need no locks.
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
"""A decode, or another function that asks a model for predictions."""


class Abandoned(BaseException):
    """Ends a decode whose batch was abandoned. Not an `Exception`, so rules do not catch it."""


@dataclass(frozen=True)
class Finished(Generic[T]):
    """The result of a job, or the error that ended it."""

    result: T | None = None
    error: BaseException | None = None


class Seat(Generic[T]):
    """The predictor of one job: runs the job in a thread and blocks each request until the pass."""

    def __init__(self, denoiser: Predictor, job: Job[T]) -> None:
        self.mask_id, self.shift = denoiser.mask_id, denoiser.shift
        self._denoiser = denoiser
        self._asked: SimpleQueue[Request | Finished[T]] = SimpleQueue()
        self._answered: SimpleQueue[Tensor | None] = SimpleQueue()
        self._thread = Thread(target=self._run, args=(job,), daemon=True)
        self.request: Request | None = None
        """The request that the job is waiting on; None once it has ended."""
        self.finished: Finished[T] | None = None

    def begin(self) -> None:
        """Run the job until its first request or its end."""
        self._thread.start()
        self._listen()

    def go_on(self, answer: Tensor) -> None:
        """Answer the job's request, and run the job until its next request or its end."""
        self._answered.put(answer)
        self._listen()

    def _listen(self) -> None:
        said = self._asked.get()
        if isinstance(said, Finished):
            self.request, self.finished = None, said
        else:
            self.request = said

    def leave(self) -> None:
        """End the job if it has not ended: its request raises `Abandoned`."""
        self._answered.put(None)
        if self._thread.ident is not None:
            self._thread.join()

    def _run(self, job: Job[T]) -> None:
        try:
            self._asked.put(Finished(job(self)))
        except BaseException as error:  # `Batch` raises it in the caller's thread
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
        return answer.to(torch.float32, copy=True)  # a copy, so the pass can be freed

    def read(self, ids: IntArray, start: int) -> Reading:
        return self.interpret(self.logits(ids, start))

    def interpret(self, logits: Tensor) -> Reading:
        return self._denoiser.interpret(logits)


class Batch(Generic[T]):
    """Jobs that share the forward passes of one model. Iterating yields results as jobs finish.

    The next job takes each place that becomes free. After a job fails, no further job starts; the
    running jobs finish and their results are yielded, and then the error is raised.
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
        """Answer every seat with one forward pass, and resume the jobs one after another."""
        answers = self.model.logits([seat.request if seat else None for seat in self._seats])
        for place, seat in enumerate(self._seats):
            answer, answers[place] = answers[place], None
            if seat is not None and answer is not None:
                seat.go_on(answer)

    def _fill(self) -> Iterator[T]:
        """Yield the results of jobs that have ended, and start the next jobs in their places."""
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
