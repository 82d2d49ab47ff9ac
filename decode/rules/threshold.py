"""Fast-dLLM's parallel decoding: commit all confident positions, or else the best one."""

from dataclasses import dataclass

from c4.decode.commits import Choice, Rule, accept
from c4.models import Reading
from c4.plugins.parameters import parameter
from c4.store.arrays import IntArray


@dataclass(frozen=True)
class Threshold(Rule):
    """Commit every position of the block that reaches the threshold, at every step."""

    tau: float = parameter(0.9, high=1.0, meaning="confidence that commits a position")

    def choose(self, places: IntArray, reading: Reading) -> Choice:
        return accept(places[reading.confidence[places] >= self.tau], places, reading)
