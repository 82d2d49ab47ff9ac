"""Fast-dLLM's parallel decoding: everything confident, and always the best."""

from dataclasses import dataclass

from c4.decode.commits import Choice, Rule, RuleState, accept
from c4.models import Reading
from c4.store.arrays import BoolArray
from c4.store.parameters import parameter


@dataclass(frozen=True)
class Threshold(Rule):
    """Each step commits every position of the block that reaches the threshold."""

    tau: float = parameter(0.9, high=1.0, meaning="confidence that commits a position")

    def start(self) -> "ThresholdState":
        return ThresholdState(self)


class ThresholdState(RuleState):
    """The threshold at work; it remembers nothing."""

    def __init__(self, rule: Threshold) -> None:
        self.rule = rule

    def choose(self, step: int, reading: Reading, masked: BoolArray) -> Choice:
        open_positions = self.block.open_positions(masked)
        sure = open_positions[reading.confidence[open_positions] >= self.rule.tau]
        return accept(sure, open_positions, reading)
