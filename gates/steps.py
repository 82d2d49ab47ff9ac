"""Steps of a decode: their predictions, and the protocols to observe or stop a decode."""

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
    """Predictions of one step, as recorders and gates see them. Arrays are (L,)."""

    step: int
    """1…T."""
    block: int
    """0…N-1."""
    token: TokenArray
    confidence: FloatArray
    gap: FloatArray
    entropy: FloatArray
    masked: BoolArray
    """Whether each position was masked when the step began."""


class Observer(Protocol):
    """Sees every step of a decode, in order."""

    def observe(self, view: StepView) -> None: ...


class ExitGate(Protocol):
    """Decides whether the whole sequence may stop; one instance per decode."""

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
    """Stack consecutive steps into cells."""
    return Cells(*(np.stack([getattr(view, name) for view in views]) for name in SIGNALS))


def fixed_point(signal: str, values: FloatArray) -> FloatArray:
    """Round values to the signal's resolution, and clip them at its highest value."""
    unit = UNITS[signal]
    rounded: FloatArray = np.rint(values / unit) * unit
    return np.minimum(rounded, np.float32(HIGHEST[signal]))
