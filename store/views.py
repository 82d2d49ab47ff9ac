"""What one step of a decode predicted, as recorders and gates may know it."""

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from c4.store.arrays import BoolArray, FloatArray, TokenArray

RESOLUTION = {"confidence": 2.0**-14, "gap": 2.0**-8, "entropy": 2.0**-10}
"""What signals are rounded to, once, where they are made.

Fixed point compresses to half of what raw float32 takes. Recorder and gates see the rounded
numbers and so agree exactly; commit rules see the raw ones, so rounding never changes a decode.
"""
HIGHEST = {"confidence": 1.0, "gap": 2.0**16, "entropy": 22.0}
"""The highest value of each signal; the lowest is 0.

A gap is cut there, far beyond any threshold, because float32 holds no more units exactly. More
entropy than that would take more tokens than int32 can number.
"""
UNITS = {signal: np.float32(unit) for signal, unit in RESOLUTION.items()}


@dataclass(frozen=True)
class StepView:
    """What one step predicted, as recorders and gates may know it. Arrays are (L,)."""

    step: int
    """1…T."""
    block: int
    """0…N-1."""
    token: TokenArray
    confidence: FloatArray
    gap: FloatArray
    entropy: FloatArray
    masked: BoolArray
    """Whether a position held the mask when the step began."""


def fixed_point(signal: str, values: FloatArray) -> FloatArray:
    """Values rounded to the signal's resolution, and cut at what float32 holds exactly."""
    unit = UNITS[signal]
    rounded: FloatArray = np.rint(values / unit) * unit
    return np.minimum(rounded, np.float32(HIGHEST[signal]))


class Observer(Protocol):
    """Sees every step of a decode, in order."""

    def observe(self, view: StepView) -> None: ...


class ExitGate(Protocol):
    """Decides whether the whole sequence may stop; made anew for each decode."""

    def fires(self, view: StepView) -> bool: ...
