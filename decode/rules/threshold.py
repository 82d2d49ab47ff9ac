"""Fast-dLLM's parallel decoding: commit every confident position, and at least the best."""

from dataclasses import dataclass

from c4.decode.commits import Choice, Rule, RuleState, accept
from c4.models import Reading
from c4.store.arrays import BoolArray
from c4.store.parameters import parameter


@dataclass(frozen=True)
class Threshold(Rule):
    """Commit every position of the block that reaches the threshold, at every step."""

    tau: float = parameter(0.9, high=1.0, meaning="confidence that commits a position")

    def start(self) -> "ThresholdState":
        return ThresholdState(self)


class ThresholdState(RuleState):
    """The state of the threshold rule, which remembers nothing."""

    def __init__(self, rule: Threshold) -> None:
        self.rule = rule

    def choose(self, step: int, reading: Reading, masked: BoolArray) -> Choice:
        open_positions = self.block.open_positions(masked)
        sure = open_positions[reading.confidence[open_positions] >= self.rule.tau]
        return accept(sure, open_positions, reading)
