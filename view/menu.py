"""Gates that the page offers: their parameters, slider bounds, colours and markers.

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
"""Changed parameters by gate and name, with values as they were typed."""
MOST_DEMANDS = 4.0
"""Upper end of an unbounded parameter's slider, in multiples of its default."""
SPAN_OF_ZERO = 16.0
"""Smallest upper end of an unbounded parameter's slider; a default of 0 needs it."""


@dataclass(frozen=True)
class GateMenu:
    """Gates on offer by name, made for a task with the paper's or changed settings."""

    names: Sequence[str] = tuple(GATES)

    @cached_property
    def signals(self) -> OwnSignals:
        """The users' own signals that these gates use."""
        return gate_signals(*self.names)

    def make(self, task: Task, settings: Settings | None = None) -> dict[str, Gate]:
        """Make every gate on offer under these settings."""
        return {name: self.make_one(name, task, settings or {}) for name in self.names}

    def make_one(self, name: str, task: Task, settings: Settings) -> Gate:
        """Make one gate on offer under these settings. Any other name is refused and not loaded."""
        if name not in self.names:
            raise unknown_name("gate", name, self.names)
        return make_gate(name, task.family, **settings.get(name, {}))

    def read_settings(self, texts: Sequence[str]) -> dict[str, dict[str, str]]:
        """Parse settings from an address, written as for `--set`: `cvee.tau=0.8`."""
        found: dict[str, dict[str, str]] = {}
        for change in parse_settings(texts):
            if change.part not in self.names:
                known = ", ".join(self.names)
                raise ConfigError(f"{change}: write GATE.NAME=VALUE with a gate of: {known}")
            found.setdefault(str(change.part), {})[change.name] = str(change.value)
        return found

    def describe(self, families: Sequence[Family]) -> list[dict[str, Any]]:
        """Return the data that the page needs to draw every gate and its sliders."""
        return [self._describe(name, families) for name in self.names]

    def _describe(self, name: str, families: Sequence[Family]) -> dict[str, Any]:
        mark = mark_of(name)
        made = {family: make_gate(name, family) for family in families}
        gate = next(iter(made.values()), None) or make_gate(name)
        specs: list[Field[Any]] = []
        if is_dataclass(gate) and not isinstance(gate, type):  # others declare no parameters
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
    """Return a parameter's value in a form that JSON can hold."""
    plain = plain_value(value)
    return plain if isinstance(plain, str | int | float | None) else str(plain)


def _describe_parameter(spec: Field[Any]) -> dict[str, Any]:
    """Describe a parameter by its choices or its slider; an unbounded one gets finite ends."""
    if isinstance(spec.type, type) and issubclass(spec.type, StrEnum):
        return {"name": spec.name, "choices": [str(choice) for choice in spec.type]}
    facts = bounds_of(spec)
    if facts is None:  # a user's own gate: it is set on the command line
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
    """Return a gate's thresholds on signals at every step, (…, T) each, if they can be drawn."""
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
