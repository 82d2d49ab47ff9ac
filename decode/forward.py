"""The forward pass: in full, or with cached keys and values outside the current block.

Fast-dLLM's two caches belong to the pass and not to a rule, so any rule can use either. A block's
first pass is a full one and keeps keys and values. Later passes of the block recompute a window and
reuse the keys and values of the rest. This is an approximation; in a one-layer model it is exact.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

import numpy as np

from c4.decode.commits import Block, Predictor, renew
from c4.models import Reading
from c4.plugins.parameters import Checked
from c4.store.arrays import BoolArray, IntArray

if TYPE_CHECKING:
    from torch import Tensor

    from c4.models import Denoiser, KeyValues


class Cache(StrEnum):
    """The positions that are cached after a block's first pass."""

    OFF = "off"
    PREFIX = "prefix"  # everything before the block
    DUAL = "dual"  # everything outside the block


@dataclass(frozen=True)
class Forward(Checked):
    """How forward passes are computed, independently of the rule."""

    cache: Cache = Cache.OFF

    def enter(self, predictor: Predictor, block: Block, length: int) -> Predictor:
        """Return the predictor for one block of a generation of `length` positions."""
        if self.cache is Cache.OFF:
            return predictor
        stop = block.stop if self.cache is Cache.DUAL else length
        denoiser: Denoiser = predictor  # type: ignore[assignment]  # only a `Denoiser` can cache
        return CachedPass(denoiser, slice(block.start, stop), length)


class CachedPass:
    """A predictor whose passes after the first recompute only a window."""

    def __init__(self, predictor: "Denoiser", window: slice, length: int) -> None:
        self.predictor = predictor
        self.mask_id, self.shift = predictor.mask_id, predictor.shift
        self.window, self.length = window, length
        self.passes = 0
        self._memory: KeyValues
        self._reading: Reading
        self._logits: Tensor

    @property
    def fills_first(self) -> bool:
        """Whether the last pass may commit only the block's first position.

        A shifted model predicts a window's first position from the output before the window.
        Fast-dLLM's code for Dream therefore commits only that position after the full pass.
        """
        return self.shift and self.passes == 1

    def interpret(self, logits: "Tensor") -> Reading:
        return self.predictor.interpret(logits)

    def read(self, ids: IntArray, start: int) -> Reading:
        fresh, window = self._pass(ids, start)
        reading = self.interpret(fresh)
        if self.passes > 1:
            reading = renew(self._reading, reading, window)
        self._reading = reading
        return reading

    def logits(
        self,
        ids: IntArray,
        start: int,
        *,
        positions: IntArray | None = None,
        attention: BoolArray | None = None,
    ) -> "Tensor":
        fresh, window = self._pass(ids, start, positions, attention)
        if self.passes == 1:
            self._logits = fresh
        else:
            inside = window.stop - window.start
            self._logits[window] = fresh[:inside]
            self._logits[self.length :] = fresh[inside:]  # rows that a rule appended
        return self._logits.clone()

    def _pass(
        self,
        ids: IntArray,
        start: int,
        positions: IntArray | None = None,
        attention: BoolArray | None = None,
    ) -> "tuple[Tensor, slice]":
        """Return a pass's logits, and the slice of the generation that their first rows predict."""
        self.passes += 1
        stop = min(self.window.stop, len(ids) - start)
        if self.passes == 1:
            window = np.arange(start + self.window.start, start + stop)
            behind = np.arange(start + self.length, len(ids))  # rows that a rule appended
            rows = np.concatenate([window, behind])
            logits, self._memory = self.predictor.remember(
                ids, start, rows, positions=positions, attention=attention
            )
            return logits, slice(0, self.length)
        output = self.predictor.recall(ids, self._memory, positions=positions, attention=attention)
        if self.shift:  # the last output predicts the position after the window
            return output[:-1], slice(self.window.start + 1, stop)
        return output, slice(self.window.start, stop)
