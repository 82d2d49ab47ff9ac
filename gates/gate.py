"""The exit gate protocol, and the function that evaluates gates."""

from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from c4.errors import ConfigError, did_you_mean, naming_failures
from c4.gates.signals import SIGNAL_NAMES, Ints, Signals
from c4.store.arrays import BoolArray
from c4.store.cells import Cells

Number = float | npt.NDArray[np.float64]
"""A parameter of a gate, or an array of its values that broadcasts against (…, T)."""


class Gate(Protocol):
    """An exit gate: any object with a function `fires`, whether c4's own or a user's.

    A gate may also set two attributes. With `wants_cells = True` it is called as
    `fires(s, cells)`, one trajectory at a time. With `needs_future = True` it also reads later
    steps, so it can be replayed but not used inside a decode.
    """

    def fires(self, s: Signals, /) -> npt.ArrayLike:
        """Whether each step may stop. (…, T)"""


def is_gate(found: Any) -> bool:
    """Whether an object is a gate, or a class of gates."""
    return callable(getattr(found, "fires", None))


def wants_cells(gate: Gate | type[Gate]) -> bool:
    """Whether `fires` takes the cells of a trajectory in addition to its signals."""
    return bool(getattr(gate, "wants_cells", False))


def needs_future(gate: Gate | type[Gate]) -> bool:
    """Whether a gate reads later steps, so that it cannot run in a live decode."""
    return bool(getattr(gate, "needs_future", False))


def require_live(gate: Gate) -> None:
    """Raise `ConfigError` if a gate cannot run in a live decode."""
    if needs_future(gate):
        raise ConfigError(
            f"{type(gate).__name__} needs to know later steps, so it can be replayed over a "
            "recording but not run in a live decode; ask it with: c4 replay"
        )


def ask(gate: Gate, s: Signals, cells: Cells | None = None) -> BoolArray:
    """Ask a gate whether each step may stop; raise `ConfigError` if a user's gate fails.

    Padding steps never fire, regardless of the gate's answer.

    Args:
        s: arrays of (…, T).
        cells: arrays of (T, L), for a gate that wants cells.

    Returns:
        (…, T), with the dimensions of a grid's parameters in front.
    """
    question: Any = gate.fires
    # Comparisons with NaN are false, as intended.
    quiet = np.errstate(invalid="ignore", over="ignore")
    with naming_failures(f"the gate {type(gate).__name__} fails"), quiet:
        try:
            answer = question(s, cells) if wants_cells(gate) else question(s)
        except AttributeError as error:
            if error.obj is not s:
                raise
            name = str(error.name)
            there = did_you_mean(name, SIGNAL_NAMES) or f"there are: {', '.join(SIGNAL_NAMES)}."
            raise ConfigError(
                f"there is no signal {name!r}; {there} To use a signal of your own, list it: "
                f"signals = ({name},)"
            ) from error
        return _booleans(gate, answer, s.exists.shape) & s.exists


def exit_step(fires: BoolArray) -> Ints:
    """The first step that fires, counted from 1; 0 if none does. (…, T) -> (…)"""
    return np.where(fires.any(axis=-1), fires.argmax(axis=-1) + 1, 0).astype(np.int32)


def _booleans(gate: Gate, answer: Any, shape: tuple[int, ...]) -> BoolArray:
    """Check that a gate's answer has a boolean for every step; numbers would count as true."""
    found = np.asarray(answer)
    if found.dtype.kind != "b":
        what = found.dtype if found.shape else repr(answer)
        raise ConfigError(
            f"the gate {type(gate).__name__} fails: fires must return booleans, not {what}; write "
            "a comparison such as s.run >= 3"
        )
    try:
        np.broadcast_shapes(found.shape, shape)  # a grid's parameters come before the steps
        answers_steps = found.shape[-1:] == shape[-1:]
    except ValueError:
        answers_steps = False
    if not answers_steps:
        raise ConfigError(
            f"the gate {type(gate).__name__} fails: fires must answer each step, an array of "
            f"{shape}, not one of {found.shape}"
        )
    return found
