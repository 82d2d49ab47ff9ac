"""Keep as many workers at work as were asked for, until nothing is left to do."""

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from c4.errors import C4Error
from c4.record.engines.worker import REFUSED, Ended, Worker
from c4.store.claims import Claims, mark_dead, read_aside
from c4.store.locations import Location

DEATHS_EACH = 4
"""Workers that may die in a row for each that was asked for, before anything more gets done."""


class Running(Protocol):
    """A worker that an engine has started."""

    worker: Worker

    def ended(self) -> Ended | None:
        """How the worker ended; None while it is at work."""
        ...


class Engine(Protocol):
    """A way to start workers."""

    workers: int
    """How many are to be at work."""
    poll_seconds: float
    """Seconds between two looks at who has ended."""

    def start(self, places: Sequence[int]) -> Sequence[Running]:
        """Start a worker for each of some places, which are numbered from 0; there may be none."""
        ...

    def stop(self, running: Sequence[Running]) -> None:
        """End workers, which give back what they hold, and whatever the engine itself needs."""
        ...


def supervise(
    engine: Engine, folders: Sequence[Location], count: Callable[[], int]
) -> dict[str, str]:
    """Start workers and replace those that die. The runs do not need this to go on.

    Returns when every worker has found nothing left to do: by dead worker, what it died of.

    Args:
        folders: of the runs that the workers write.
        count: how much is done or given up; asked again and again, and may show the progress.
    """
    failures: dict[str, str] = {}
    running: dict[int, Running] = {}
    dead = list(range(engine.workers))
    counted, deaths = -1, 0
    try:
        while running or dead:
            running |= zip(dead, engine.start(dead), strict=True)
            dead = []
            for place, reason in _ended(running):
                started = running.pop(place)
                if reason:
                    failures[started.worker.id] = reason
                    _mark_dead(folders, started.worker, reason)
                    dead.append(place)
            if (now := count()) != counted:
                counted, deaths = now, 0
            deaths += len(dead)
            if deaths > DEATHS_EACH * engine.workers:
                raise C4Error(
                    f"{deaths} workers died one after another and got nothing done; the last: "
                    f"{failures.popitem()[1]}. What was finished is safe; give the same command "
                    "to go on"
                )
            time.sleep(engine.poll_seconds)
        return failures
    finally:
        engine.stop(list(running.values()))
        for started in running.values():
            _mark_dead(folders, started.worker, "stopped")
        for folder in folders:
            _tidy(folder)


def _ended(running: Mapping[int, Running]) -> list[tuple[int, str]]:
    """The places whose workers have ended, and what each died of; empty where it was done."""
    found = []
    for place, started in running.items():
        ended = started.ended()
        if ended is not None and ended.code == REFUSED:
            raise C4Error(ended.reason)
        if ended is not None:
            found.append((place, ended.reason))
    return found


def _mark_dead(folders: Sequence[Location], worker: Worker, reason: str) -> None:
    for folder in folders:
        mark_dead(folder, worker.id, reason)


def _tidy(folder: Location) -> None:
    """Clear away what dead workers left."""
    with Claims(folder) as claims:
        held = [claim for claim in claims.current().values() if not claims.is_lost(claim)]
        claims.finished = not held and not read_aside(folder)
