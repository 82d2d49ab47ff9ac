"""Commit rules: which masked positions a step writes, and which it takes back.

A rule holds parameters only. `start` puts it to work on one decode and returns the state it
keeps until the decode ends, so that one rule can serve many decodes.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Protocol

import numpy as np

from c4.models import Reading
from c4.plugins.parameters import Checked
from c4.store.arrays import BoolArray, IntArray
from c4.store.origins import Origin, OriginArray
from c4.tasks import Shape

if TYPE_CHECKING:
    from torch import Tensor

NOWHERE: IntArray = np.empty(0, dtype=np.int64)


class Predictor(Protocol):
    """The part of a denoiser that rules need. Most rules use only `read`."""

    mask_id: int
    shift: bool

    def read(self, ids: IntArray, start: int) -> Reading: ...

    def logits(
        self,
        ids: IntArray,
        start: int,
        *,
        positions: IntArray | None = None,
        attention: BoolArray | None = None,
    ) -> "Tensor": ...

    def interpret(self, logits: "Tensor") -> Reading: ...


@dataclass(frozen=True)
class Block:
    """One block of a decode: positions start to stop, and the steps that it is given."""

    index: int
    count: int
    """Number of blocks in the decode, N."""
    start: int
    stop: int
    budget: int
    """Steps in which the schedule fills the block, S."""

    def open_positions(self, masked: BoolArray) -> IntArray:
        """The block's masked positions, in order."""
        return self.start + np.flatnonzero(masked[self.start : self.stop])


@dataclass(frozen=True)
class Choice:
    """What a step commits, the origin of those commits, and what it takes back."""

    positions: IntArray
    """Masked positions of the block that take their prediction; at least one."""
    origin: Origin | OriginArray
    """The origin of all positions, or of each."""
    revoked: IntArray = field(default_factory=lambda: NOWHERE)
    """Committed positions of the block that are masked again."""


class RuleState(ABC):
    """The state of a rule during one decode."""

    block: Block
    """The block that is being decoded."""

    def enter(self, block: Block) -> None:
        """Begin a block, after the block before it has been filled."""
        self.block = block

    def read(self, predictor: Predictor, ids: IntArray, start: int) -> Reading:
        """The step's forward pass. A rule that needs more than a reading asks for it here.

        Args:
            ids: prompt and generation. (P+L,)
            start: where the generation begins, P.
        """
        return predictor.read(ids, start)

    @abstractmethod
    def choose(self, step: int, reading: Reading, masked: BoolArray) -> Choice:
        """Choose what to commit at this step.

        Args:
            step: counted from 1 at the block's start.
            reading: unrounded, so that rounding cannot make ties.
            masked: which positions of the generation still hold the mask. (L,)
        """


class Rule(Checked):
    """A commit rule: parameters, and what it does with them.

    A rule that remembers nothing between steps defines `choose`. Any other defines `start`, which
    returns a state of its own.
    """

    def start(self) -> RuleState:
        """Go to work on one decode."""
        return Memoryless(self)

    def choose(self, places: IntArray, reading: Reading) -> Choice:
        """Choose what to commit at a step.

        Args:
            places: the block's masked positions, in order; at least one.
            reading: unrounded, at every position of the generation.
        """
        raise NotImplementedError("a rule defines choose(places, reading), or start()")

    def check(self, shape: Shape, *, shift: bool) -> None:
        """Refuse what the rule cannot decode, before a model is loaded. Most rules refuse nothing.

        Args:
            shift: whether the model predicts a position from the one before.
        """


@dataclass
class Memoryless(RuleState):
    """The state of a rule that keeps none."""

    rule: Rule

    def choose(self, step: int, reading: Reading, masked: BoolArray) -> Choice:  # noqa: ARG002
        return self.rule.choose(self.block.open_positions(masked), reading)


def renew(reading: Reading, fresh: Reading, window: slice) -> Reading:
    """A reading whose window is replaced by the first positions of `fresh`."""
    merged = {spec.name: getattr(reading, spec.name).copy() for spec in fields(Reading)}
    for name, values in merged.items():
        values[window] = getattr(fresh, name)[: window.stop - window.start]
    return Reading(**merged)


def accept(sure: IntArray, open_positions: IntArray, reading: Reading, *, least: int = 1) -> Choice:
    """Commit the sure positions if there are at least `least`, else only the most confident one."""
    if len(sure) >= least:
        return Choice(sure, Origin.ACCEPTED)
    return Choice(most_confident(open_positions, reading, 1), Origin.SCHEDULE)


def most_confident(positions: IntArray, reading: Reading, count: int) -> IntArray:
    """The `count` most confident of some positions; ties go to the lower one.

    Positions are ranked by odds, because float32 cannot tell confidences near 1 apart.
    """
    order = np.argsort(reading.odds[positions], kind="stable")
    return positions[order[:count]]
