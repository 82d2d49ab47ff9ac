"""Fast-dLLM's parallel decoding: everything confident, and always the best."""

from dataclasses import dataclass

import numpy as np

from c4.models import Reading
from c4.record._commit import Choice, Commits, Origin, Rule, most_confident
from c4.record._parameters import parameter
from c4.record._types import BoolArray, IntArray


@dataclass(frozen=True)
class Threshold(Rule):
    """Each step commits every position of the block that reaches the threshold."""

    tau: float = parameter(0.9, high=1.0, meaning="confidence that commits a position")

    def start(self) -> "ThresholdCommits":
        return ThresholdCommits(self)


class ThresholdCommits(Commits):
    """Fast-dLLM keeps nothing from step to step."""

    def __init__(self, rule: Threshold) -> None:
        self.rule = rule

    def choose(self, step: int, reading: Reading, masked: BoolArray) -> Choice:
        open_positions = self.block.open_positions(masked)
        sure = open_positions[reading.confidence[open_positions] >= self.rule.tau]
        return accept(sure, open_positions, reading)


def accept(sure: IntArray, open_positions: IntArray, reading: Reading, *, least: int = 1) -> Choice:
    """Commit what is sure if there are `least` of it, else the most confident position alone."""
    if len(sure) >= least:
        return Choice(sure, Origin.ACCEPTED)
    return Choice(np.sort(most_confident(open_positions, reading, 1)), Origin.SCHEDULE)
