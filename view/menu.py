"""The gates that a page may ask: their parameters, the bounds of each, and how they are drawn.

Only gates that were named when the viewer was started are on offer, so no request can load code.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import Field, dataclass, is_dataclass
from enum import StrEnum
from functools import cached_property
from typing import Any

import numpy as np

from c4.analysis.colours import mark_of
from c4.analysis.paper_names import method_label
from c4.errors import ConfigError, unknown_name
from c4.gates.cvee import CVEE, ConfidenceOnly, FixedPatience, StabilityOnly
from c4.gates.gate import Gate
from c4.gates.own_signals import OwnSignals
from c4.gates.prophet import Prophet
from c4.gates.registry import GATES, gate_signals, make_gate
from c4.gates.sched import SchED
from c4.gates.signals import Floats, Signals
from c4.plugins.parameters import bounds_of, plain_value, settable
from c4.store.labels import parse_settings
from c4.tasks import Family, Task

Settings = Mapping[str, Mapping[str, str]]
"""What was changed in each gate, as it was written."""
MOST_DEMANDS = 4.0
"""How far a slider of an unbounded parameter reaches, in multiples of its default."""
SPAN_OF_ZERO = 16.0
"""How far a slider of an unbounded parameter reaches, at the least; enough for a default of 0."""


@dataclass(frozen=True)
class GateMenu:
    """Gates by name, made for a task with the paper's settings or with other ones."""

    names: Sequence[str] = tuple(GATES)

    @cached_property
    def signals(self) -> OwnSignals:
        """The users' own signals that these gates name."""
        return gate_signals(*self.names)

    def make(self, task: Task, settings: Settings | None = None) -> dict[str, Gate]:
        """Every gate on offer, as it is set."""
        return {name: self.make_one(name, task, settings or {}) for name in self.names}

    def make_one(self, name: str, task: Task, settings: Settings) -> Gate:
        """One gate on offer, as it is set. A gate of any other name is refused and not loaded."""
        if name not in self.names:
            raise unknown_name("gate", name, self.names)
        return make_gate(name, task.family, **settings.get(name, {}))

    def read_settings(self, texts: Sequence[str]) -> dict[str, dict[str, str]]:
        """Settings as an address holds them: `cvee.tau=0.8`, like `--set`."""
        found: dict[str, dict[str, str]] = {}
        for change in parse_settings(texts):
            if change.part not in self.names:
                known = ", ".join(self.names)
                raise ConfigError(f"{change}: write GATE.NAME=VALUE with a gate of: {known}")
            found.setdefault(str(change.part), {})[change.name] = str(change.value)
        return found

    def describe(self, families: Sequence[Family]) -> list[dict[str, Any]]:
        """What the page needs to know to draw every gate and its sliders."""
        return [self._describe(name, families) for name in self.names]

    def _describe(self, name: str, families: Sequence[Family]) -> dict[str, Any]:
        mark = mark_of(name)
        made = {family: make_gate(name, family) for family in families}
        gate = next(iter(made.values()), None) or make_gate(name)
        specs: list[Field[Any]] = []
        if is_dataclass(gate) and not isinstance(gate, type):  # others tell of no parameters
            specs = list(settable(gate))
        return {
            "name": name,
            "label": method_label(name),
            "colour": mark.colour,
            "marker": mark.marker,
            "about": (type(gate).__doc__ or "").strip().partition("\n")[0],
            "parameters": [_describe_parameter(spec) for spec in specs],
            "defaults": {
                family: {spec.name: _plain(getattr(one, spec.name)) for spec in specs}
                for family, one in made.items()
            },
        }


def _plain(value: Any) -> Any:
    """A parameter's value as JSON has it."""
    plain = plain_value(value)
    return plain if isinstance(plain, str | int | float | None) else str(plain)


def _describe_parameter(spec: Field[Any]) -> dict[str, Any]:
    """A parameter with its choices, or with its slider: useful ends where it is unbounded."""
    if isinstance(spec.type, type) and issubclass(spec.type, StrEnum):
        return {"name": spec.name, "choices": [str(choice) for choice in spec.type]}
    facts = bounds_of(spec)
    if facts is None:  # a gate of a user's own: it is set on the command line
        return {"name": spec.name, "fixed": True}
    low, high = facts["low"], facts["high"]
    default: Any = spec.default
    least = low if math.isfinite(low) else 0.0
    most = high if math.isfinite(high) else max(MOST_DEMANDS * float(default), SPAN_OF_ZERO)
    counts = facts["whole"] or isinstance(default, int)
    step = 1.0 if counts else 0.01 if most <= 1 else 0.1
    slider = {"low": least, "high": most, "step": step}
    return {"name": spec.name, "meaning": facts["meaning"], **slider}


def demands(gate: Gate, s: Signals) -> dict[str, Floats]:
    """What a gate asks of each signal at every step, as far as it can be drawn. (…, T) each"""
    found: dict[str, Floats] = {}
    if isinstance(gate, CVEE | StabilityOnly):
        found["run"] = gate.patience(s)
    if isinstance(gate, FixedPatience):
        found["run"] = np.full(s.step.shape, gate.p_min, dtype=np.float64)
    if isinstance(gate, CVEE | ConfidenceOnly | FixedPatience):
        found["confidence"] = np.full(s.step.shape, gate.tau, dtype=np.float64)
    if isinstance(gate, Prophet):
        found["region_gap"] = gate.demand(s)
    if isinstance(gate, SchED):
        found["masked_gap"] = gate.demand(s)
    return found
