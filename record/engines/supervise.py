"""Keeping as many workers at work as were asked for, until the job is done."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from c4.errors import C4Error
from c4.record.engines.work import Job, Outcome, Worker
from c4.store.claims import Claims, bury, read_aside

DEATHS_EACH = 4
"""Workers that may die in a row for each that was asked for, before anything more gets done."""


class Engine(Protocol):
    """A way to start workers."""

    name: str
    workers: int
    """How many are to be at work."""
    poll_seconds: float
    """Seconds between two looks at who has ended."""

    def new_worker(self, number: int) -> Worker:
        """A worker for one of the places, which are numbered from 0."""
        ...

    def start(self, job: Job, worker: Worker) -> None: ...

    def ended(self) -> list[tuple[Worker, Outcome]]:
        """The workers that have ended since the last call, and how."""
        ...

    def stop(self) -> None:
        """End all workers, which give back what they hold."""
        ...


@dataclass
class Supervisor:
    """Starts workers and replaces those that die. The run does not need it to go on."""

    engine: Engine
    job: Job
    """As workers get it."""
    count: Callable[[], int]
    """How much is done or given up. It is asked again and again, and may show the progress."""
    failures: dict[str, str] = field(default_factory=dict)
    """By worker, what it died of."""
    _places: dict[str, int] = field(default_factory=dict)
    """By worker, the number of its place."""
    _deaths: int = 0
    """How many died since anything got done."""
    _counted: int = -1

    def run(self) -> None:
        """Return when every worker has found the job done."""
        try:
            for number in range(self.engine.workers):
                self._start(number)
            while self._places:
                self._look()
                for worker, outcome in self.engine.ended():
                    self._take_note(worker, outcome)
                time.sleep(self.engine.poll_seconds)
            self._look()
        finally:
            self.engine.stop()
            for identity in self._places:
                self._bury(identity, "stopped")
            self._tidy()

    def _start(self, number: int) -> None:
        worker = self.engine.new_worker(number)
        self._places[worker.id] = number
        self.engine.start(self.job, worker)

    def _look(self) -> None:
        counted = self.count()
        if counted != self._counted:
            self._counted, self._deaths = counted, 0

    def _take_note(self, worker: Worker, outcome: Outcome) -> None:
        number = self._places.pop(worker.id)
        if outcome.refused:
            raise C4Error(outcome.refused)
        if not outcome.failed:
            return
        self.failures[worker.id] = outcome.failed
        self._bury(worker.id, outcome.failed)
        self._look()
        self._deaths += 1
        if self._deaths > DEATHS_EACH * self.engine.workers:
            raise C4Error(
                f"{self._deaths} workers died one after another and got nothing done; the last: "
                f"{outcome.failed}. What was finished is safe; give the same command to go on"
            )
        self._start(number)

    def _bury(self, worker: str, reason: str) -> None:
        for folder in self.job.folders:
            bury(folder, worker, reason)

    def _tidy(self) -> None:
        """Clear away what dead workers left."""
        for folder in self.job.folders:
            with Claims(folder) as claims:
                left = [c for c in claims.current().values() if not claims.is_lost(c)]
                claims.finished = not left and not read_aside(folder)
