"""Commit rules, which choose the positions that a step commits and those that it masks again.

A rule holds only parameters. `start` returns a new state for one decode, so one rule can serve many
decodes.
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
    """One block of a decode: positions `start` to `stop` (exclusive), and its number of steps."""

    index: int
    count: int
    """Number of blocks in the decode, N."""
    start: int
    stop: int
    budget: int
    """Number of steps in which the schedule fills the block, S."""

    def open_positions(self, masked: BoolArray) -> IntArray:
        """The block's masked positions, in order."""
        return self.start + np.flatnonzero(masked[self.start : self.stop])


@dataclass(frozen=True)
class Choice:
    """The positions that a step commits, the origin of those commits, and the revoked positions."""

    positions: IntArray
    """Masked positions of the block to fill with their predicted tokens; at least one."""
    origin: Origin | OriginArray
    """One origin for all positions, or an array with one for each."""
    revoked: IntArray = field(default_factory=lambda: NOWHERE)
    """Committed positions of the block to mask again."""


class RuleState(ABC):
    """The state of a rule during one decode."""

    block: Block
    """The block that is being decoded."""

    def enter(self, block: Block) -> None:
        """Begin a block; every earlier block is full."""
        self.block = block

    def read(self, predictor: Predictor, ids: IntArray, start: int) -> Reading:
        """Run the step's forward pass. Override this if the rule needs more than a reading.

        Args:
            ids: prompt and generation. (P+L,)
            start: first position of the generation, P.
        """
        return predictor.read(ids, start)

    @abstractmethod
    def choose(self, step: int, reading: Reading, masked: BoolArray) -> Choice:
        """Choose the positions to commit at this step.

        Args:
            step: counted from 1 at the block's start.
            reading: unrounded, because rounding could create ties.
            masked: True at the positions of the generation that are still masked. (L,)
        """


class Rule(Checked):
    """A commit rule and its parameters.

    A rule that keeps no state between steps defines `choose`. Any other rule defines `start`, which
    returns a state.
    """

    def start(self) -> RuleState:
        """Return the state for one decode."""
        return Memoryless(self)

    def choose(self, places: IntArray, reading: Reading) -> Choice:
        """Choose the positions to commit at a step.

        Args:
            places: the block's masked positions, in order; at least one.
            reading: unrounded signals for every position of the generation.
        """
        raise NotImplementedError("a rule defines choose(places, reading), or start()")

    def check(self, shape: Shape, *, shift: bool) -> None:
        """Refuse shapes and models that the rule does not support, before a model is loaded.

        Args:
            shift: whether the model predicts each position from the output at the previous one.
        """


@dataclass
class Memoryless(RuleState):
    """The state of a rule that remembers nothing between steps."""

    rule: Rule

    def choose(self, step: int, reading: Reading, masked: BoolArray) -> Choice:  # noqa: ARG002
        return self.rule.choose(self.block.open_positions(masked), reading)


def renew(reading: Reading, fresh: Reading, window: slice) -> Reading:
    """Return a reading with its window replaced by the first positions of `fresh`."""
    merged = {spec.name: getattr(reading, spec.name).copy() for spec in fields(Reading)}
    for name, values in merged.items():
        values[window] = getattr(fresh, name)[: window.stop - window.start]
    return Reading(**merged)


def accept(sure: IntArray, open_positions: IntArray, reading: Reading, *, least: int = 1) -> Choice:
    """Commit the sure positions if there are at least `least`, else the most confident open one."""
    if len(sure) >= least:
        return Choice(sure, Origin.ACCEPTED)
    return Choice(most_confident(open_positions, reading, 1), Origin.SCHEDULE)


def most_confident(positions: IntArray, reading: Reading, count: int) -> IntArray:
    """Return the `count` most confident of some positions; ties go to the lower position.

    Positions are ranked by odds, because float32 cannot tell confidences near 1 apart.
    """
    order = np.argsort(reading.odds[positions], kind="stable")
    return positions[order[:count]]
