"""Fast-dLLM's parallel decoding: everything confident, and always the best."""

from dataclasses import dataclass

from c4.models import Reading
from c4.record._commit import Choice, Commits, Rule, accept
from c4.record._parameters import parameter
from c4.record._types import BoolArray


@dataclass(frozen=True)
class Threshold(Rule):
    """Each step commits every position of the block that reaches the threshold."""

    tau: float = parameter(0.9, high=1.0, meaning="confidence that commits a position")

    def start(self) -> "ThresholdCommits":
        return ThresholdCommits(self)


class ThresholdCommits(Commits):
    """The threshold at work; it remembers nothing."""

    def __init__(self, rule: Threshold) -> None:
        self.rule = rule

    def choose(self, step: int, reading: Reading, masked: BoolArray) -> Choice:
        open_positions = self.block.open_positions(masked)
        sure = open_positions[reading.confidence[open_positions] >= self.rule.tau]
        return accept(sure, open_positions, reading)
