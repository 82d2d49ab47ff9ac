"""Signals defined by users: computed once per recording, and read by gates as `s.flux`.

A gate lists them in its attribute `signals`; they are computed wherever the gate runs, over a
recording or inside a decode.
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
    """A user-defined signal: a pure function of one trajectory."""

    def __call__(self, s: Signals, cells: Cells) -> npt.ArrayLike:
        """Return one number per step, which depends only on that step and earlier ones. (T,)

        Args:
            s: c4's own signals. (T,)
            cells: the model's predictions. (T, L)
        """


@dataclass(frozen=True)
class NamedSignal:
    """A signal that a gate or a user has named."""

    label: str
    """Name, followed by the first digits of a hash of the source."""
    compute: OwnSignal

    @property
    def name(self) -> str:
        """Name that gates use; dashes in a package's entry point become underscores."""
        return plain_label(self.label).rpartition(":")[2].replace("-", "_")

    @property
    def definition(self) -> str:
        """Text that changes whenever the signal does."""
        return f"{self.name} {definition(self.compute)}"

    def __call__(self, s: Signals, cells: Cells) -> Floats:
        """Compute the signal of one trajectory; raise `ConfigError` if its function fails. (T,)"""
        # NaN needs no warning: gates never fire on it.
        with naming_failures(f"the signal {self.name} fails"), np.errstate(all="ignore"):
            values = np.asarray(self.compute(s, cells), dtype=np.float64)
        if values.shape != s.step.shape:
            raise ConfigError(
                f"the signal {self.name} has the shape {values.shape}; it must have one number "
                f"for each of {len(s.step)} steps"
            )
        return values


OwnSignals = Mapping[str, NamedSignal]
"""Users' own signals by the names that gates use."""
NO_SIGNALS: OwnSignals = {}


RESERVED = frozenset({"trajectory"})
"""Names of other columns in the files that hold signals."""


def find_signal(signal: str | OwnSignal) -> NamedSignal | None:
    """Find a signal by its typed name or wrap a function; return None for c4's own signals."""
    compute: Any = signal
    if isinstance(signal, str):
        label = REGISTRY.label(signal)
        if label in SIGNAL_NAMES:
            return None
        compute = REGISTRY.behind(label)
    else:
        name = getattr(signal, "__name__", type(signal).__name__)
        # A notebook function has no source file, so each one counts as distinct.
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
    """Collect the users' own signals that gates list in their classes.

    Args:
        also: additional signals, or their names as users type them.
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
