"""Gates by name, with the paper's settings for each family, and gates that users define."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import Field, is_dataclass, replace
from typing import Any, TypeAlias

from c4.errors import RAISED, C4Error, ConfigError, failure, shortened
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
"""Every gate of c4's own by its name."""

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
"""Table 3 of the paper. CVEE's settings are its defaults, one for all tasks."""


REGISTRY = Registry("gate", "--gate", GATES, example="my_gates:Calm")
"""Every gate that a user can name."""
GateKind: TypeAlias = str | type[Gate]
"""A gate by any name that `REGISTRY` knows, or a class of gates as a notebook defines it."""


def make_gate(name: GateKind, family: Family | None = None, /, **params: Any) -> Gate:
    """A gate by name or class, with the paper's settings where none are given.

    Args:
        family: whose settings to start from; the gate's own defaults if None.
    """
    kind, shown = _behind(name), kind_label(name)
    if not isinstance(kind, type):
        if params:
            raise ConfigError(f"{shown} is a ready-made gate and takes no parameters")
        return checked_gate(shown, kind)
    settings = PAPER_SETTINGS.get(shown, {}).get(family, {}) if family else {}
    return checked_gate(shown, _build(shown, kind, {**settings, **params}))


def kind_label(gate: GateKind) -> str:
    """What a name or a class is called."""
    return gate if isinstance(gate, str) else gate.__name__


def _behind(gate: GateKind) -> Any:
    return REGISTRY.find(gate).found if isinstance(gate, str) else gate


def gate_fields(name: GateKind) -> dict[str, Field[Any]]:
    """What can be set in a gate, by name."""
    kind = _behind(name)
    made_here = isinstance(kind, type) and is_dataclass(kind)  # and not ready-made
    return {spec.name: spec for spec in settable(kind)} if made_here else {}


def gate_parameters(name: str) -> list[str]:
    """Names of what can be set in a gate."""
    return list(gate_fields(name))


def set_parameters(gate: Gate) -> dict[str, Any]:
    """The parameters that a gate has, as data; none if it declares none."""
    declared: Any = gate
    return (
        {spec.name: getattr(gate, spec.name) for spec in settable(declared)}
        if is_dataclass(gate)
        else {}
    )


def gate_signals(*names: GateKind) -> OwnSignals:
    """The users' own signals that the gates of these names name."""
    return own_signals([_behind(name) for name in names])


def find_gate(name: str) -> Plugin:
    """The gate of a name, or what makes it; the sources of its own signals count as its source."""
    plugin = REGISTRY.find(name)
    signals = gate_signals(name)
    if not signals:
        return plugin
    sources = json.dumps([plugin.source_sha256, *(s.label for s in signals.values())]).encode()
    return replace(plugin, source_sha256=hashlib.sha256(sources).hexdigest())


def _build(name: str, kind: type[Any], params: Mapping[str, Any]) -> Any:
    """A gate of a kind; what its own code makes of the parameters is said in words."""
    typed = typed_parameters(name, kind, params)
    try:
        return kind(**typed)
    except C4Error:
        raise
    except RAISED as error:
        raise ConfigError(f"cannot make the gate {shortened(name)!r}: {failure(error)}") from error


def checked_gate(name: str, gate: Any) -> Gate:
    """A gate of a user's own, if it can be one."""
    if not is_gate(gate):
        raise ConfigError(f"{name} is no gate: it has no function fires(signals)")
    own_signals([gate])  # what is wrong with them is said now
    if is_dataclass(gate) and not isinstance(gate, type):
        require_meant(gate)
    found: Gate = gate
    return found
