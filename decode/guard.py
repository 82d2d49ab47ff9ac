"""Checks on a user's own commit rule: a mistake raises an error instead of decoding wrongly."""

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Any, TypeVar

import numpy as np

from c4.decode.commits import Block, Choice, Predictor, Rule, RuleState
from c4.errors import ConfigError, naming_failures
from c4.models import Reading
from c4.store.arrays import BoolArray, IntArray
from c4.store.origins import Origin
from c4.tasks import Shape

T = TypeVar("T")
ORIGINS = [int(origin) for origin in Origin]
PASSES_PER_POSITION = 20
"""Forward passes per position of a block after which a decode is considered endless."""


@dataclass(frozen=True)
class GuardedRule(Rule):
    """A user's rule whose calls and choices are checked."""

    rule: Rule

    @property
    def name(self) -> str:
        return type(self.rule).__name__

    def check(self, shape: Shape, *, shift: bool) -> None:
        asked(self.name, lambda: self.rule.check(shape, shift=shift))

    def start(self) -> RuleState:
        state = asked(self.name, self.rule.start)
        if not callable(getattr(state, "choose", None)):
            raise ConfigError(
                f"the rule {self.name} fails: start() returns {state!r}, which has no function "
                "choose(step, reading, masked); return an object of a class derived from "
                "c4.decode.RuleState"
            )
        return GuardedState(self.name, state)


class GuardedState(RuleState):
    """The state of a user's rule, with a check on every choice."""

    def __init__(self, name: str, state: RuleState) -> None:
        self.name = name
        self.state = state

    def enter(self, block: Block) -> None:
        super().enter(block)
        asked(self.name, self.state.enter, block)

    def read(self, predictor: Predictor, ids: IntArray, start: int) -> Reading:
        reading: Any = asked(self.name, self.state.read, predictor, ids.copy(), start)
        if not isinstance(reading, Reading):
            raise ConfigError(
                f"the rule {self.name} fails: its read returns {reading!r} and no reading, as "
                "predictor.read(ids, start) makes one"
            )
        return reading

    def choose(self, step: int, reading: Reading, masked: BoolArray) -> Choice:
        choice = asked(self.name, self.state.choose, step, sealed(reading), masked.copy())
        most = PASSES_PER_POSITION * (self.block.stop - self.block.start)
        wrong = mistake(choice, self.block, masked)
        if not wrong and step > most:
            wrong = (
                f"it spends {most} passes and is not done: what it takes back, it must at some "
                "time leave committed"
            )
        if wrong:
            raise ConfigError(f"the rule {self.name} fails at step {step} of a block: {wrong}")
        return choice


def sealed(reading: Reading) -> Reading:
    """Return a read-only view of a reading, because its tokens will be committed."""
    arrays = {spec.name: getattr(reading, spec.name).view() for spec in fields(reading)}
    for array in arrays.values():
        array.flags.writeable = False
    return replace(reading, **arrays)


def asked(name: str, function: Callable[..., T], *arguments: Any) -> T:
    """Call a user's function; an error in it becomes a `ConfigError` that names the rule."""
    with naming_failures(f"the rule {name} fails"):
        return function(*arguments)


def mistake(choice: Any, block: Block, masked: BoolArray) -> str:
    """Describe the mistake in a choice; empty if there is none."""
    if not isinstance(choice, Choice):
        return f"it returns {choice!r} and no c4.decode.Choice"
    for what, positions, open_now in (
        ("positions", choice.positions, True),
        ("revoked", choice.revoked, False),
    ):
        places = np.asarray(positions)
        if places.ndim != 1 or (places.size and places.dtype.kind not in "iu"):
            return f"{what} is not a one-dimensional array of integers"
        inside = (places >= block.start) & (places < block.stop)
        if not inside.all():
            at, last = places[~inside][0], block.stop - 1
            return f"{what} names {at}, outside the block of {block.start} to {last}"
        if len(set(places.tolist())) < len(places):
            return f"{what} names a position twice"
        other = masked[places.astype(np.int64)] != open_now
        if other.any():
            state = "committed already" if open_now else "still masked"
            return f"{what} names {places[other][0]}, which is {state}"
    if not len(choice.positions):
        return "it commits nothing, so the decode would never end"
    origins = np.asarray(choice.origin)
    if origins.shape not in ((), (len(choice.positions),)) or not np.isin(origins, ORIGINS).all():
        return f"its origin {choice.origin!r} is no c4.store.Origin, nor one for each position"
    return ""
