"""Gates by name, with the paper's settings for each family, and gates that users define."""

import hashlib
import json
from dataclasses import Field, is_dataclass, replace
from typing import Any, TypeAlias

from c4.errors import ConfigError, naming_failures, shortened
from c4.gates.cvee import CVEE, ConfidenceOnly, FixedPatience, StabilityOnly
from c4.gates.gate import Gate, is_gate
from c4.gates.oracle import Oracle
from c4.gates.own_signals import OwnSignals, own_signals
from c4.gates.progress import FixedProgress
from c4.gates.prophet import Prophet
from c4.gates.sched import SchED
from c4.plugins import Plugin, Registry
from c4.plugins.parameters import require_meant, settable, typed_parameters
from c4.tasks import Family

GATES: dict[str, type[Gate]] = {
    "cvee": CVEE,
    "confidence": ConfidenceOnly,
    "stability": StabilityOnly,
    "fixed-patience": FixedPatience,
    "prophet": Prophet,
    "sched": SchED,
    "progress": FixedProgress,
    "oracle": Oracle,
}
"""c4's own gates by name."""

PAPER_SETTINGS: dict[str, dict[Family, dict[str, Any]]] = {
    "prophet": {
        Family.LETTERS: {"high": 7.5, "mid": 5.0, "low": 2.5},
        Family.LONG_REASONING: {"high": 8.0, "mid": 5.0, "low": 3.5},
        Family.CODE: {"high": 7.5, "mid": 5.0, "low": 4.5},
    },
    "sched": {
        Family.LETTERS: {"high": 7.5, "low": 2.5, "curve": "cosine", "patience": 0},
        Family.LONG_REASONING: {"high": 8.0, "low": 3.5, "curve": "linear", "patience": 4},
        Family.CODE: {"high": 7.5, "low": 4.5, "curve": "cosine", "patience": 4},
    },
}
"""Table 3 of the paper. CVEE uses its defaults for all tasks."""


REGISTRY = Registry("gate", "--gate", GATES, example="my_gates:Calm")
"""Every gate that a user can name."""
GateKind: TypeAlias = str | type[Gate]
"""A gate name that `REGISTRY` knows, or a gate class, for instance from a notebook."""


def make_gate(name: GateKind, family: Family | None = None, /, **params: Any) -> Gate:
    """Make a gate by name or class, using the paper's settings for parameters not given.

    Args:
        family: the family whose settings to start from; None for the gate's own defaults.
    """
    kind, shown = _behind(name), kind_label(name)
    if not isinstance(kind, type):
        if params:
            raise ConfigError(f"{shown} is a ready-made gate and takes no parameters")
        return checked_gate(shown, kind)
    settings = PAPER_SETTINGS.get(shown, {}).get(family, {}) if family else {}
    typed = typed_parameters(shown, kind, {**settings, **params})
    with naming_failures(f"cannot make the gate {shortened(shown)!r}"):
        return checked_gate(shown, kind(**typed))


def checked_gate(name: str, gate: Any) -> Gate:
    """Return the object as a gate; raise `ConfigError` if it is not a valid one."""
    if not is_gate(gate):
        raise ConfigError(f"{name} is no gate: it has no function fires(signals)")
    own_signals([gate])  # raises if one of them is invalid
    if is_dataclass(gate) and not isinstance(gate, type):
        require_meant(gate)
    found: Gate = gate
    return found


def find_gate(name: str) -> Plugin:
    """Find a gate, or its class, by name; its hash also covers the gate's own signals."""
    plugin, signals = REGISTRY.find(name), gate_signals(name)
    if not signals:
        return plugin
    sources = json.dumps([plugin.source_sha256, *(s.label for s in signals.values())]).encode()
    return replace(plugin, source_sha256=hashlib.sha256(sources).hexdigest())


def gate_signals(*names: GateKind) -> OwnSignals:
    """Users' own signals that these gates use."""
    return own_signals([_behind(name) for name in names])


def gate_fields(name: GateKind) -> dict[str, Field[Any]]:
    """Parameters of a gate by name; empty for a ready-made gate object."""
    kind = _behind(name)
    made_here = isinstance(kind, type) and is_dataclass(kind)
    return {spec.name: spec for spec in settable(kind)} if made_here else {}


def set_parameters(gate: Gate) -> dict[str, Any]:
    """Current values of a gate's parameters."""
    declared: Any = gate
    specs: list[Field[Any]] = settable(declared) if is_dataclass(gate) else []
    return {spec.name: getattr(gate, spec.name) for spec in specs}


def kind_label(gate: GateKind) -> str:
    """The name of a gate in messages and results."""
    return gate if isinstance(gate, str) else gate.__name__


def _behind(gate: GateKind) -> Any:
    return REGISTRY.find(gate).found if isinstance(gate, str) else gate
