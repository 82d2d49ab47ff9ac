"""Progress of a run and its workers, read from the run's folder on any machine."""

import time
from collections import deque
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field

from c4.store.claims import Watch, lease_seconds, read_aside
from c4.store.locations import Location
from c4.store.parts import list_parts
from c4.store.runs import covers

REMEMBERED = 300.0
"""Seconds over which the rate is averaged."""


@dataclass(frozen=True)
class Progress:
    """The progress of a run at one moment."""

    folder: Location
    done: int
    """Number of saved trajectories."""
    wanted: int
    """Number of requested trajectories, as far as the workers have reported."""
    workers: int
    """Number of workers that are not known to be dead."""
    per_minute: float | None
    """Trajectories per minute while the run was watched; None if no rate is known yet."""
    eta_seconds: float | None
    failures: Mapping[str, str] = field(default_factory=dict)
    """Reasons why workers ended, by worker id."""
    aside: Mapping[int, str] = field(default_factory=dict)
    """Reasons why trajectories are no longer tried, by trajectory."""

    @property
    def left(self) -> int:
        return max(0, self.wanted - self.done - len(self.aside))


class ProgressWatch:
    """Polls the progress of a run.

    Args:
        wanted: the trajectories to count; None for all that the workers report.
    """

    def __init__(
        self,
        folder: Location,
        wanted: Collection[int] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.folder = folder
        self.wanted = wanted
        self._watch = Watch(folder, lease_seconds(), clock)
        self._counts: deque[tuple[float, int]] = deque()
        self._failures: dict[str, str] = {}
        self._most = 0

    def look(self) -> Progress:
        done, signs = self._done(), self._watch.signs()
        alive = [s for worker, s in signs.items() if not self._watch.is_dead(worker, s)]
        self._failures |= {w: s.ended for w, s in signs.items() if s.ended}
        aside = read_aside(self.folder)
        if self.wanted is not None:
            aside = {number: why for number, why in aside.items() if number in self.wanted}
        self._most = max([self._most, done, *(sign.wanted for sign in alive)])
        wanted = self._most if self.wanted is None else len(self.wanted)
        rate = self._rate(done)
        left = max(0, wanted - done - len(aside))
        return Progress(
            folder=self.folder,
            done=done,
            wanted=wanted,
            workers=len(alive),
            per_minute=rate,
            eta_seconds=60 * left / rate if rate else None,
            failures=dict(self._failures),
            aside=aside,
        )

    def _done(self) -> int:
        # Trajectories move from pending to rows, so reading in this order misses none.
        pending = {part.first for part in list_parts(self.folder / "pending")}
        rows = list_parts(self.folder / "rows")
        if self.wanted is not None:
            return sum(number in pending or covers(rows, number) for number in self.wanted)
        ranges = {(part.first, part.last) for part in rows}
        sealed = sum(last - first + 1 for first, last in ranges)
        return sealed + sum(not covers(rows, number) for number in pending)

    def _rate(self, done: int) -> float | None:
        now = self._watch.clock()
        self._counts.append((now, done))
        while now - self._counts[0][0] > REMEMBERED:
            self._counts.popleft()
        since, before = self._counts[0]
        return 60 * (done - before) / (now - since) if now > since and done > before else None
