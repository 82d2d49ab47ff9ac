"""Signals of users' own: computed once for every recording, and read by gates as `s.flux`.

A gate names them in its attribute `signals`. From then on this process computes them wherever it
computes signals, over a recording or inside a decode.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from c4.errors import C4Error, ConfigError, failure
from c4.gates.signals import SIGNAL_NAMES, Floats, OfTrajectory, Signals
from c4.plugins import LabelRegistry, definition, plain_label, source_hash
from c4.store.cells import Cells

REGISTRY = LabelRegistry(
    "signal", "--signal", dict.fromkeys(sorted(SIGNAL_NAMES)), "my_signals:flux"
)
"""Every signal that a gate or a figure can name."""


class OwnSignal(Protocol):
    """A signal of a user's own: a pure function of one trajectory."""

    def __call__(self, s: Signals, cells: Cells) -> npt.ArrayLike:
        """One number for every step, which depends on that step and those before it. (T,)

        Args:
            s: c4's own signals. (T,)
            cells: what the model predicted. (T, L)
        """


@dataclass(frozen=True)
class NamedSignal:
    """A signal that a gate or a user has named."""

    label: str
    """Its name, and the beginning of a hash of its source."""
    compute: OwnSignal

    @property
    def name(self) -> str:
        """What gates call it."""
        return attribute(self.label)

    def of(self, s: Signals, cells: Cells) -> Floats:
        """The signal of one trajectory; what goes wrong in it is an error in words. (T,)"""
        try:
            with np.errstate(all="ignore"):  # what is no number never fires
                values = np.asarray(self.compute(s, cells), dtype=np.float64)
        except (C4Error, MemoryError):
            raise
        except Exception as error:
            raise ConfigError(f"the signal {self.name} fails: {failure(error)}") from error
        if values.shape != s.step.shape:
            raise ConfigError(
                f"the signal {self.name} has the shape {values.shape}; it must have one number "
                f"for each of {len(s.step)} steps"
            )
        return values


_NAMED: dict[str, NamedSignal] = {}
"""Signals of users' own that this process has been told of, by what gates call them."""


def attribute(name: str) -> str:
    """What gates call a signal: the last part of its name."""
    return plain_label(name).rpartition(":")[2]


def name_signal(signal: str | OwnSignal) -> str:
    """Let this process know a signal, by a name as users type it or as a function.

    Returns what gates call it.
    """
    if isinstance(signal, str):
        label = REGISTRY.label(signal)
        if label in SIGNAL_NAMES:
            return label
        compute: Any = REGISTRY.behind(label)
    else:
        compute = signal
        name = getattr(compute, "__name__", type(compute).__name__)
        label = f"{name}@{source_hash(compute, str(compute.__module__))[:12]}"
    named = NamedSignal(label, compute)
    _check(named)
    _NAMED[named.name] = named
    return named.name


def _check(signal: NamedSignal) -> None:
    shown = plain_label(signal.label)
    if not callable(signal.compute):
        raise ConfigError(f"{shown} is no signal: it must be a function (s, cells)")
    if hasattr(Signals, signal.name) or signal.name in SIGNAL_NAMES:
        raise ConfigError(f"the signal {shown} would hide c4's own {signal.name}; rename it")
    known = _NAMED.get(signal.name)
    if known is not None and plain_label(known.label) != shown:
        raise ConfigError(
            f"gates would call both {plain_label(known.label)} and {shown} {signal.name}; rename "
            "one of them"
        )


def name_signals_of(gate: object) -> list[str]:
    """Let this process know the signals that a gate names; returns what it calls them."""
    signals: Any = getattr(gate, "signals", ())
    if isinstance(signals, str) or not isinstance(signals, Iterable):
        raise ConfigError(
            f"the signals of {type(gate).__name__} must be a tuple, as in signals = (flux,)"
        )
    return [name_signal(signal) for signal in signals]


def signal_labels(gate: object) -> list[str]:
    """What the users' own signals go by that a gate names."""
    names = set(name_signals_of(gate))
    return [label for name, label in own_labels().items() if name in names]


def own_signals() -> dict[str, OfTrajectory]:
    """What computes the users' own signals that this process knows, by what gates call them."""
    return {name: signal.of for name, signal in sorted(_NAMED.items())}


def own_labels() -> dict[str, str]:
    """What the users' own signals go by that this process knows, by what gates call them."""
    return {name: signal.label for name, signal in sorted(_NAMED.items())}


def own_definitions() -> list[str]:
    """What is another when a user's own signal is: its label, and its function."""
    return [f"{signal.label} {definition(signal.compute)}" for _, signal in sorted(_NAMED.items())]
