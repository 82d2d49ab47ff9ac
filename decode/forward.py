"""The forward pass: in full, or with a cache of what lies outside the current block.

Fast-dLLM's two caches belong to the pass and not to a rule, so any rule can use either. A block's
first pass is a full one and keeps keys and values. Later passes of the block compute a window anew
and take everything else as the first pass left it: an approximation, exact in a model of one layer.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Protocol

import numpy as np

from c4.decode.commits import Block, Predictor, renew
from c4.models import Reading
from c4.plugins.parameters import Checked
from c4.store.arrays import BoolArray, IntArray

if TYPE_CHECKING:
    from torch import Tensor

    from c4.models import KeyValues


class Cache(StrEnum):
    """What the passes after a block's first one do not recompute."""

    OFF = "off"
    PREFIX = "prefix"  # everything before the block
    DUAL = "dual"  # everything outside the block


@dataclass(frozen=True)
class Forward(Checked):
    """How forward passes are computed, independently of the rule."""

    cache: Cache = Cache.OFF


class CachingPredictor(Predictor, Protocol):
    """A predictor that can keep keys and values; see `Denoiser`."""

    def remember(
        self,
        ids: IntArray,
        start: int,
        rows: IntArray,
        *,
        positions: IntArray | None = None,
        attention: BoolArray | None = None,
    ) -> "tuple[Tensor, KeyValues]": ...

    def recall(
        self,
        ids: IntArray,
        memory: "KeyValues",
        *,
        positions: IntArray | None = None,
        attention: BoolArray | None = None,
    ) -> "Tensor": ...


class ForwardPasses(Protocol):
    """The passes of one decode, in order."""

    def enter(self, block: Block) -> Predictor:
        """The predictor that a rule uses while it decodes a block."""

    @property
    def fills_first(self) -> bool:
        """Whether the last pass may commit only the block's first position."""


@dataclass(frozen=True)
class WholePasses:
    """Passes that recompute everything."""

    predictor: Predictor
    fills_first: bool = False

    def enter(self, block: Block) -> Predictor:  # noqa: ARG002 - all are alike
        return self.predictor


class CachedPasses:
    """Passes with a cache that each block refills.

    A shifted model predicts a window's first position outside the window. Fast-dLLM's program for
    Dream therefore commits that position, and no other, from the full pass; so does this.
    """

    def __init__(self, predictor: CachingPredictor, cache: Cache, length: int) -> None:
        self.predictor = predictor
        self.cache, self.length = cache, length
        self._pass: CachedPass | None = None

    def enter(self, block: Block) -> Predictor:
        stop = block.stop if self.cache is Cache.DUAL else self.length
        self._pass = CachedPass(self.predictor, slice(block.start, stop), self.length)
        return self._pass

    @property
    def fills_first(self) -> bool:
        return self.predictor.shift and self._pass is not None and self._pass.passes == 1


class CachedPass:
    """A predictor whose passes, except for the first, recompute only a window."""

    def __init__(self, predictor: CachingPredictor, window: slice, length: int) -> None:
        self.predictor = predictor
        self.mask_id, self.shift = predictor.mask_id, predictor.shift
        self.window, self.length = window, length
        self.passes = 0
        self._memory: KeyValues
        self._reading: Reading
        self._logits: Tensor

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
            self._logits[self.length :] = fresh[inside:]  # what stands behind the generation
        return self._logits.clone()

    def _pass(
        self,
        ids: IntArray,
        start: int,
        positions: IntArray | None = None,
        attention: BoolArray | None = None,
    ) -> "tuple[Tensor, slice]":
        """The logits of a pass, and the generated positions that they predict first of all."""
        self.passes += 1
        if self.passes == 1:
            everything = np.arange(len(ids))
            inside = (everything >= start + self.window.start) & (
                everything < start + self.window.stop
            )
            behind = everything >= start + self.length  # a rule's own, not the generation's
            rows = everything[inside | behind]
            logits, self._memory = self.predictor.remember(
                ids, start, rows, positions=positions, attention=attention
            )
            return logits, slice(0, self.length)
        output = self.predictor.recall(ids, self._memory, positions=positions, attention=attention)
        stop = min(self.window.stop, len(ids) - start)
        if self.shift:  # the last output predicts what lies behind the window
            return output[:-1], slice(self.window.start + 1, stop)
        return output, slice(self.window.start, stop)


def make_passes(forward: Forward, predictor: Predictor, length: int) -> ForwardPasses:
    """The passes of one decode of `length` positions."""
    if forward.cache is Cache.OFF:
        return WholePasses(predictor)
    caching: CachingPredictor = predictor  # type: ignore[assignment]  # a Denoiser can
    return CachedPasses(caching, forward.cache, length)
