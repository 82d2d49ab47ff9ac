"""Signals of users' own: computed once for every recording, and read by gates as `s.flux`.

A gate names them in its attribute `signals`, and they are computed wherever the gate is asked, over
a recording or inside a decode.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from keyword import iskeyword
from typing import Any, Protocol
from uuid import uuid4

import numpy as np
import numpy.typing as npt

from c4.errors import ConfigError, naming_failures
from c4.gates.signals import SIGNAL_NAMES, Floats, Signals
from c4.plugins import Registry, definition, plain_label, source_hash
from c4.store.cells import Cells

REGISTRY = Registry("signal", "--signal", dict.fromkeys(sorted(SIGNAL_NAMES)), "my_signals:flux")
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
    """Name, and the beginning of a hash of the source."""
    compute: OwnSignal

    @property
    def name(self) -> str:
        """The name that gates use; a package may offer it under one with dashes."""
        return plain_label(self.label).rpartition(":")[2].replace("-", "_")

    @property
    def definition(self) -> str:
        """Text that changes whenever the signal does."""
        return f"{self.name} {definition(self.compute)}"

    def __call__(self, s: Signals, cells: Cells) -> Floats:
        """The signal of one trajectory; an error if its function fails. (T,)"""
        # What is no number never fires.
        with naming_failures(f"the signal {self.name} fails"), np.errstate(all="ignore"):
            values = np.asarray(self.compute(s, cells), dtype=np.float64)
        if values.shape != s.step.shape:
            raise ConfigError(
                f"the signal {self.name} has the shape {values.shape}; it must have one number "
                f"for each of {len(s.step)} steps"
            )
        return values


OwnSignals = Mapping[str, NamedSignal]
"""Users' own signals, by the names that gates use."""
NO_SIGNALS: OwnSignals = {}


RESERVED = frozenset({"trajectory"})
"""Names of other columns in the files that hold signals."""


def find_signal(signal: str | OwnSignal) -> NamedSignal | None:
    """A signal by a name as users type it, or as a function; None for c4's own."""
    compute: Any = signal
    if isinstance(signal, str):
        label = REGISTRY.label(signal)
        if label in SIGNAL_NAMES:
            return None
        compute = REGISTRY.behind(label)
    else:
        name = getattr(signal, "__name__", type(signal).__name__)
        # A function of a notebook has no file, so each one counts as another.
        source = source_hash(str(getattr(signal, "__module__", ""))) or uuid4().hex
        label = f"{name}@{source[:12]}"
    found, shown = NamedSignal(label, compute), plain_label(label)
    name = found.name
    if not callable(compute):
        raise ConfigError(f"{shown} is no signal: it must be a function (s, cells)")
    if not name.isidentifier() or iskeyword(name):
        raise ConfigError(f"gates cannot ask for a signal named {name}; define it with def flux(…)")
    if hasattr(Signals, name) or name in (*SIGNAL_NAMES, *RESERVED):
        raise ConfigError(f"the signal {shown} would hide c4's own {name}; rename it")
    return found


def own_signals(gates: Iterable[object], also: Iterable[str | OwnSignal] = ()) -> OwnSignals:
    """The users' own signals that the classes of some gates name.

    Args:
        also: further signals, or their names as users type them.
    """
    asked = list(also)
    for gate in gates:
        kind = gate if isinstance(gate, type) else type(gate)
        signals: Any = getattr(kind, "signals", ())
        if isinstance(signals, str) or not isinstance(signals, Iterable):
            raise ConfigError(
                f"the signals of {kind.__name__} must be a tuple in its class, as in "
                "signals = (flux,)"
            )
        asked += signals
    named: dict[str, NamedSignal] = {}
    for signal in filter(None, map(find_signal, asked)):
        known = named.setdefault(signal.name, signal)
        if known.compute is not signal.compute and known.definition != signal.definition:
            raise ConfigError(
                f"gates would call both {plain_label(known.label)} and "
                f"{plain_label(signal.label)} {signal.name}; rename one of them"
            )
    return dict(sorted(named.items()))
