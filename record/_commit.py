"""Commit rules: which masked positions a step writes.

A rule holds parameters only. `block` starts it on a block and returns the state it keeps until
the block is full, so that one rule can serve many decodes.
"""

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from c4.models import Reading
from c4.record._types import BoolArray, IntArray


class BlockCommits(Protocol):
    """A rule at work in one block."""

    def choose(self, step: int, reading: Reading, masked: BoolArray) -> IntArray:
        """The masked positions of the block to commit now.

        Args:
            step: 1…S, counted from the block's start.
            reading: unrounded, so that rounding cannot make ties.
            masked: which positions of the generation still hold the mask. (L,)
        """


class CommitRule(Protocol):
    """Decides which positions a step commits, and nothing else."""

    def block(self, start: int, stop: int, steps: int) -> BlockCommits:
        """Begin a block of positions start to stop that may spend this many steps."""


@dataclass(frozen=True)
class Schedule:
    """Low-confidence remasking: an equal share of the block each step, most confident first."""

    def block(self, start: int, stop: int, steps: int) -> "_ScheduledBlock":
        return _ScheduledBlock(start, stop, steps)


@dataclass(frozen=True)
class _ScheduledBlock:
    start: int
    stop: int
    steps: int

    def choose(self, step: int, reading: Reading, masked: BoolArray) -> IntArray:
        share, rest = divmod(self.stop - self.start, self.steps)
        open_positions = self.start + np.flatnonzero(masked[self.start : self.stop])
        return most_confident(open_positions, reading, share + (step <= rest))


def most_confident(positions: IntArray, reading: Reading, count: int) -> IntArray:
    """The `count` most confident of some positions; ties go to the lower one."""
    order = np.argsort(-reading.confidence[positions], kind="stable")
    return positions[order[:count]]
