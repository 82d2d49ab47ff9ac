"""Steps of a decode: what a step predicted, and who may watch or stop the decode at it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from c4.store.arrays import BoolArray, FloatArray, TokenArray
from c4.store.cells import SIGNALS, Cells
from c4.store.columns import HIGHEST, RESOLUTION

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


class Observer(Protocol):
    """Sees every step of a decode, in order."""

    def observe(self, view: StepView) -> None: ...


class ExitGate(Protocol):
    """Decides whether the whole sequence may stop; made anew for each decode."""

    def fires(self, view: StepView) -> bool: ...


class CellRecorder:
    """An observer that keeps every step."""

    def __init__(self) -> None:
        self._views: list[StepView] = []

    def observe(self, view: StepView) -> None:
        self._views.append(view)

    def cells(self) -> Cells:
        """All steps seen so far."""
        return stack_views(self._views)


def stack_views(views: Sequence[StepView]) -> Cells:
    """Consecutive steps as cells."""
    return Cells(*(np.stack([getattr(view, name) for view in views]) for name in SIGNALS))


def fixed_point(signal: str, values: FloatArray) -> FloatArray:
    """Round values to the signal's resolution, and cut them at its highest value."""
    unit = UNITS[signal]
    rounded: FloatArray = np.rint(values / unit) * unit
    return np.minimum(rounded, np.float32(HIGHEST[signal]))
