"""The schedule: low-confidence remasking, an equal share of the block each step."""

from dataclasses import dataclass

from c4.decode.commits import Choice, Rule, RuleState, most_confident
from c4.models import Reading
from c4.store.arrays import BoolArray, IntArray
from c4.store.origins import Origin


@dataclass(frozen=True)
class Schedule(Rule):
    """Low-confidence remasking: an equal share of the block each step, most confident first."""

    def start(self) -> "ScheduledState":
        return ScheduledState()


class ScheduledState(RuleState):
    """The state of the schedule; other rules use `top` for the step's top k."""

    def choose(self, step: int, reading: Reading, masked: BoolArray) -> Choice:
        return Choice(self.top(step, reading, masked), Origin.SCHEDULE)

    def top(self, step: int, reading: Reading, masked: BoolArray) -> IntArray:
        """Return the scheduled number of positions, most confident first."""
        share, rest = divmod(self.block.stop - self.block.start, self.block.budget)
        open_positions = self.block.open_positions(masked)
        return most_confident(open_positions, reading, share + (step <= rest))
