"""Fast-dLLM's parallel decoding: everything confident, and always the best."""

from dataclasses import dataclass, fields

import numpy as np

from c4.models import Memory, Reading
from c4.record._commit import Block, Choice, Commits, Origin, Predictor, Rule, most_confident
from c4.record._parameters import parameter
from c4.record._types import BoolArray, IntArray


@dataclass(frozen=True)
class Threshold(Rule):
    """Each step commits every position of the block that reaches the threshold."""

    tau: float = parameter(0.9, high=1.0, meaning="confidence that commits a position")
    cache: bool = False
    """DualCache: behind a block's first pass, only the block is computed anew."""

    def start(self) -> "ThresholdCommits":
        return ThresholdCommits(self)


class ThresholdCommits(Commits):
    """With a cache, the last reading, and the keys and values around the block."""

    def __init__(self, rule: Threshold) -> None:
        self.rule = rule
        self._reading: Reading
        self._memory: Memory | None = None

    def enter(self, block: Block) -> None:
        super().enter(block)
        self._memory = None

    def read(self, predictor: Predictor, ids: IntArray, start: int) -> Reading:
        if not self.rule.cache:
            return super().read(predictor, ids, start)
        window = slice(self.block.start, self.block.stop)
        if self._memory is None:
            self._reading, self._memory = predictor.remember(ids, start, window)
        else:
            fresh = predictor.read_window(ids, self._memory)
            self._reading = renew(self._reading, fresh, window)
        return self._reading

    def choose(self, step: int, reading: Reading, masked: BoolArray) -> Choice:
        open_positions = self.block.open_positions(masked)
        sure = open_positions[reading.confidence[open_positions] >= self.rule.tau]
        return accept(sure, open_positions, reading)


def renew(reading: Reading, fresh: Reading, window: slice) -> Reading:
    """A reading of which a window is newer than the rest."""
    merged = {spec.name: getattr(reading, spec.name).copy() for spec in fields(Reading)}
    for name, values in merged.items():
        values[window] = getattr(fresh, name)
    return Reading(**merged)


def accept(sure: IntArray, open_positions: IntArray, reading: Reading, *, least: int = 1) -> Choice:
    """Commit what is sure if there are `least` of it, else the most confident position alone."""
    if len(sure) >= least:
        return Choice(sure, Origin.ACCEPTED)
    return Choice(np.sort(most_confident(open_positions, reading, 1)), Origin.SCHEDULE)
