"""Commit-Core-Then-Confirm: commit confident positions from the left, defer the rest a step."""

import re
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from c4.decode.commits import Block, Choice, Rule
from c4.decode.rules.schedule import ScheduledState
from c4.errors import ConfigError
from c4.models import Reading
from c4.plugins.parameters import parameter
from c4.store.arrays import BoolArray
from c4.store.origins import Origin
from c4.tasks import Shape

STALLED_STEPS = 3
"""Consecutive steps without a core after which every ready position is committed."""


@dataclass(frozen=True)
class CCTC(Rule):
    """Eqs. 5 and 6: the core, the confirmed deferrals and the scheduled top k commit together."""

    tau: float = parameter(0.8, high=1.0, meaning="confidence that makes a position ready")
    H: float = parameter(1, meaning="undecided positions the core may leave behind it; inf for any")
    confirm: bool = True
    """Whether a deferred position is committed if it predicts the same token again."""
    blocks: str = "all"
    """`all`, `not-last`, or the numbers of the blocks to accelerate, such as `0,2`."""
    last_step_valve: bool = True
    """Whether every ready position is committed at the last step of a block's budget."""
    stall_valve: bool = True
    """Whether every ready position is committed after three steps in a row without a core."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.blocks not in ("all", "not-last") and not re.fullmatch(r"\d+(,\d+)*", self.blocks):
            raise ConfigError(
                f"CCTC takes blocks all, not-last, or numbers as 0,2, not {self.blocks!r}"
            )

    def check(self, shape: Shape, *, shift: bool) -> None:
        missing = [number for number in self._numbers if number >= shape.blocks]
        if missing:
            raise ConfigError(
                f"CCTC has no block {missing[0]} to accelerate: {shape.length} positions in blocks "
                f"of {shape.block_length} are blocks 0 to {shape.blocks - 1}"
            )

    @property
    def _numbers(self) -> list[int]:
        """Block numbers that the user listed."""
        return [int(number) for number in self.blocks.split(",") if number.isdecimal()]

    def accelerates(self, block: Block) -> bool:
        """Whether the rule is active in a block; other blocks use only the schedule."""
        if self.blocks == "not-last":
            return block.index < block.count - 1
        return self.blocks == "all" or block.index in self._numbers

    def start(self) -> "CCTCState":
        return CCTCState(self)


class CCTCState(ScheduledState):
    """The tokens that were deferred at the previous step.

    Uses plain lists and dicts, because a block is short and numpy is slow on a few numbers.
    """

    def __init__(self, rule: CCTC) -> None:
        self.rule = rule

    def enter(self, block: Block) -> None:
        super().enter(block)
        self._deferred: dict[int, int] = {}
        self._stalled = 0

    def choose(self, step: int, reading: Reading, masked: BoolArray) -> Choice:
        if not self.rule.accelerates(self.block):
            return super().choose(step, reading, masked)
        core, late = self._split(reading, masked)
        confirmed = [p for p, token in (core | late).items() if self._deferred.get(p) == token]
        if self.rule.confirm:
            self._deferred = late
        ready, safe = bool(core or late), bool(core or confirmed)
        opened = self._valve_opens(step, ready, safe)
        return merge(
            # In the order of Eq. 6: a position counts for the first branch that commits it.
            (Origin.CORE, core),
            (Origin.CONFIRMED, confirmed),
            (Origin.ACCEPTED, late if opened else ()),
            (Origin.SCHEDULE, self.top(step, reading, masked).tolist()),
        )

    def _split(self, reading: Reading, masked: BoolArray) -> tuple[dict[int, int], dict[int, int]]:
        """Split the ready positions and their tokens: the core, and those after too many holes."""
        open_positions = self.block.open_positions(masked)
        ready = reading.confidence[open_positions] >= self.rule.tau
        token = reading.token[open_positions]
        core, late, holes = {}, {}, 0
        for place, is_ready, predicted in zip(
            open_positions.tolist(), ready.tolist(), token.tolist(), strict=True
        ):
            if not is_ready:
                holes += 1
            elif holes <= self.rule.H:
                core[place] = predicted
            else:
                late[place] = predicted
        return core, late

    def _valve_opens(self, step: int, any_ready: bool, any_safe: bool) -> bool:
        self._stalled = self._stalled + 1 if any_ready and not any_safe else 0
        if self.rule.stall_valve and self._stalled == STALLED_STEPS:
            self._stalled = 0
            return True
        return self.rule.last_step_valve and step == self.block.budget


def merge(*branches: tuple[Origin, Iterable[int]]) -> Choice:
    """Merge the positions of all branches; each is attributed to the first branch that has it."""
    origin: dict[int, Origin] = {}
    for who, positions in branches:
        for position in positions:
            origin.setdefault(position, who)
    chosen = sorted(origin)
    accounts = np.array([origin[position] for position in chosen], dtype=np.uint8)
    return Choice(np.array(chosen, dtype=np.int64), accounts)
