"""SlowFast Sampling: explore how far the model sees, then fill that far quickly."""

from dataclasses import dataclass

import numpy as np

from c4.models import Reading
from c4.record._commit import Block, Choice, Commits, Rule
from c4.record._parameters import parameter
from c4.record._threshold import accept
from c4.record._types import BoolArray

WINDOW = 2
"""Estimates that must agree for a span to settle."""
ENOUGH = 2
"""Confident positions that commit together; a single one is no more than the best."""


@dataclass(frozen=True)
class SlowFast(Rule):
    """A block is decoded in cycles of a slow, exploring phase and a fast, filling one."""

    explore: float = parameter(6, low=1, meaning="passes of the slow phase")
    tau_span: float = parameter(0.3, high=1.0, meaning="confidence that a span reaches out to")
    tau: float = parameter(0.9, high=1.0, meaning="confidence that commits positions together")
    spread: float = parameter(1.0, meaning="deviation of two estimates below which a span settles")

    def start(self) -> "SlowFastCommits":
        return SlowFastCommits(self)


class SlowFastCommits(Commits):
    """Where the present cycle began, and how far it reaches once that has settled."""

    def __init__(self, rule: SlowFast) -> None:
        self.rule = rule

    def enter(self, block: Block) -> None:
        super().enter(block)
        self._begin_cycle(block.start)

    def _begin_cycle(self, start: int) -> None:
        self._start = start
        self._explored = 0
        self._ends: list[int] = []
        self._settled = False
        self._end = start

    def choose(self, step: int, reading: Reading, masked: BoolArray) -> Choice:
        explored = self._explored >= self.rule.explore
        if explored and not masked[self._start : self._end].any():
            self._begin_cycle(self._end)
            explored = False
        if not explored:
            self._explore(reading, masked)
        reach = self._end if explored else self.block.stop
        open_positions = self._start + np.flatnonzero(masked[self._start : reach])
        sure = open_positions[reading.confidence[open_positions] >= self.rule.tau]
        return accept(sure, open_positions, reading, least=ENOUGH)

    def _explore(self, reading: Reading, masked: BoolArray) -> None:
        """Estimate where the cycle ends, unless two estimates agreed already."""
        self._explored += 1
        if self._settled:
            return
        self._ends.append(self._estimate(reading, masked))
        latest = self._ends[-WINDOW:]
        self._settled = len(latest) == WINDOW and bool(np.std(latest) < self.rule.spread)
        self._end = latest[-1] if self._settled else int(np.mean(latest))

    def _estimate(self, reading: Reading, masked: BoolArray) -> int:
        """One past the farthest masked position that is at all confident; one position at least."""
        scope = slice(self._start, self.block.stop)
        seen = masked[scope] & (reading.confidence[scope] >= self.rule.tau_span)
        return self._start + (int(np.flatnonzero(seen)[-1]) + 1 if seen.any() else 1)
