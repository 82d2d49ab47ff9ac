"""Grids of gate parameters: syntax, default ranges, and the exits of all settings."""

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import Field, dataclass
from decimal import Decimal, InvalidOperation
from typing import Any

import numpy as np

from c4.errors import ConfigError
from c4.gates.gate import Gate, ask, exit_step
from c4.gates.registry import GATES, GateKind, gate_fields, kind_label, make_gate
from c4.gates.run_signals import RunSignals
from c4.gates.signals import Ints
from c4.plugins.parameters import Value, bounds_of, parse_value
from c4.replay.exits import ask_gates
from c4.store.cells import Cells

CELLS_AT_ONCE = 2**18
"""Settings × trajectories × steps that are evaluated at once."""

MOST_SETTINGS = 100_000
"""Maximum number of settings in a grid; the calibration file stores all of them."""

MULTIPLES = (0.0, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 4.0)
"""Multiples of the default that are tried for a parameter without two finite bounds."""

DEFAULT_RANGES: dict[str, dict[str, str]] = {
    "cvee": {"tau": "0.5:0.95:0.05", "gamma": "2", "p_min": "1:16:1"},
    "confidence": {"tau": "0.5:0.95:0.05"},
    "stability": {"gamma": "0:4:0.5", "p_min": "1:16:1"},
    "fixed-patience": {"tau": "0.5:0.95:0.05", "p_min": "1:16:1"},
    "prophet": {"high": "4:12:1", "mid": "3:9:1", "low": "1:6:1"},
    "sched": {
        "high": "4:12:1",
        "low": "1:6:1",
        "curve": "linear,cosine,exponential",
        "patience": "0,2,4,8",
    },
    "progress": {"fraction": "0.05:1:0.05"},
}
"""Values that `c4 calibrate` tries by default for c4's own gates."""


@dataclass(frozen=True)
class Grid:
    """All combinations of the given parameter values, in order."""

    gate: GateKind
    values: Mapping[str, Sequence[Value]]

    @property
    def name(self) -> str:
        """Name of the gate in messages and results."""
        return kind_label(self.gate)

    def __len__(self) -> int:
        return int(np.prod([len(values) for values in self.values.values()]))

    def settings(self) -> Iterator[dict[str, Value]]:
        """Yield the combinations; the last parameter varies fastest."""
        for combination in itertools.product(*self.values.values()):
            yield dict(zip(self.values, combination, strict=True))

    def make(self, setting: Mapping[str, Any]) -> Gate:
        """Make the gate with one setting, or with arrays of parameter values."""
        return make_gate(self.gate, **setting)

    def neighbours(self, index: int) -> list[int]:
        """Indices of the settings one grid value away in a single parameter."""
        shape = [len(values) for values in self.values.values()]
        places = np.indices(shape).reshape(len(shape), -1)  # (parameters, settings)
        distance = np.abs(places - places[:, [index]]).sum(axis=0)
        return np.flatnonzero(distance == 1).tolist()

    def from_strict_to_loose(self) -> list[int]:
        """Indices of the settings, most cautious first; the order does not depend on data."""
        directions = strictness(self.gate)
        columns = []
        for name, values in self.values.items():
            ranks = np.argsort(np.argsort(values)) / max(1, len(values) - 1)
            columns.append(ranks * directions.get(name, 0))
        totals = [sum(combination) for combination in itertools.product(*columns)]
        return [int(i) for i in np.argsort(-np.array(totals), kind="stable")]


def strictness(gate: GateKind) -> dict[str, int]:
    """Return for each parameter whether a higher value (1) or a lower value (-1) exits later.

    A number without a declaration gets the default of `parameter`: a higher value exits later.
    """
    return {
        name: facts["stricter"] if facts else 1
        for name, spec in gate_fields(gate).items()
        if (facts := bounds_of(spec)) or spec.type in (int, float, "int", "float")
    }


def undirected(grid: Grid) -> list[str]:
    """Names of parameters that have several values in the grid and declare no direction."""
    specs = gate_fields(grid.gate)
    return [n for n, values in grid.values.items() if len(values) > 1 and not bounds_of(specs[n])]


def make_grid(gate: GateKind, asked: Mapping[str, str]) -> Grid:
    """Make a grid from a gate's default ranges, overridden by the user's ranges."""
    make_gate(gate)  # raises for an unknown gate or a sampler
    values = {
        **default_values(gate),
        **{name: parse_values(name, text) for name, text in asked.items()},
    }
    names, shown = list(gate_fields(gate)), kind_label(gate)
    if not values and gate in GATES:
        raise ConfigError(f"{shown} has nothing to calibrate; try {', '.join(DEFAULT_RANGES)}")
    if not values and not names:
        raise ConfigError(
            f"{shown} has nothing to calibrate: parameters are the fields of a dataclass, as in "
            "tau: float = c4.gates.parameter(0.7, high=1.0)"
        )
    if not values:
        raise ConfigError(
            f"{shown} declares no bounds for {', '.join(names)}, so there are no values to try; "
            f"give some with --set {names[0]}=lo:hi:step, or declare {names[0]} with "
            "c4.gates.parameter(default, low=…, high=…)"
        )
    grid = Grid(gate, values)
    if math.prod(map(len, values.values())) > MOST_SETTINGS:
        raise ConfigError(
            f"that makes more than {MOST_SETTINGS:,} settings of {grid.name}; take fewer values or "
            "larger steps"
        )
    for name in values:
        for value in values[name]:
            grid.make({name: value})  # raises if the gate rejects the value
    return grid


def default_values(gate: GateKind) -> dict[str, list[Value]]:
    """Default values: `DEFAULT_RANGES` for c4's own gates, else from the declared bounds."""
    if isinstance(gate, str) and gate in GATES:
        ranges = DEFAULT_RANGES.get(gate, {})
        return {name: parse_values(name, text) for name, text in ranges.items()}
    return {
        name: declared_values(spec, facts)
        for name, spec in gate_fields(gate).items()
        if (facts := bounds_of(spec))
    }


def declared_values(spec: Field[Any], facts: Mapping[str, Any]) -> list[Value]:
    """Eleven values between finite bounds, otherwise multiples of the parameter's default."""
    low, high, whole = (facts[name] for name in ("low", "high", "whole"))
    if math.isfinite(low) and math.isfinite(high):
        values = [low + (high - low) * i / 10 for i in range(11)]
    else:
        unit = float(spec.default or 1.0)  # type: ignore[arg-type]  # bounded parameters have a default
        values = [min(max(unit * share, low), high) for share in MULTIPLES]
    rounded = (float(round(value)) if whole else float(f"{value:.6g}") for value in values)
    return sorted({min(max(value, low), high) for value in rounded})


def parse_values(name: str, text: str) -> list[Value]:
    """Parse `0.7`, `0.5,0.7,0.9` or `0.5:0.9:0.1`; ranges include both ends."""
    try:
        if ":" in text:
            low, high, step = (Decimal(piece) for piece in text.split(":"))
            count = int((high - low) / step) + 1
            if step <= 0 or count < 1:
                raise ConfigError(f"{name}={text}: a range must increase, lo:hi:step")
            if count > MOST_SETTINGS:
                raise ConfigError(f"{name}={text}: too many values; take a larger step")
            return [float(low + i * step) for i in range(count)]
        return [parse_value(piece) for piece in text.split(",")]
    except (ValueError, OverflowError, InvalidOperation, ZeroDivisionError):
        raise ConfigError(
            f"{name}={text}: write a value, a list a,b,c or a range lo:hi:step"
        ) from None


def grid_exits(grid: Grid, read: RunSignals, cells: Iterable[tuple[int, Cells]] = ()) -> Ints:
    """Return the exit step of every setting on every trajectory; 0 for none. (settings, n)

    Args:
        cells: numbers and cells of these trajectories, for a gate that wants cells.
    """
    settings = list(grid.settings())
    if not isinstance(grid.gate, str) or grid.gate not in GATES:  # a user's gate need not broadcast
        gates = {i: grid.make(setting) for i, setting in enumerate(settings)}
        return np.stack(list(ask_gates(gates, read, cells).values()))
    # One gate with arrays of numbers evaluates many settings at once; words do not broadcast.
    words = [name for name, values in grid.values.items() if isinstance(values[0], str)]
    numbers = {
        name: np.array([setting[name] for setting in settings])[:, None, None]
        for name in grid.values
        if name not in words
    }
    groups: dict[tuple[Value, ...], list[int]] = {}
    for i, setting in enumerate(settings):
        groups.setdefault(tuple(setting[word] for word in words), []).append(i)
    exits = np.empty((len(grid), len(read)), dtype=np.int32)
    chunk = max(1, CELLS_AT_ONCE // max(1, read.signals.step.size))
    for chosen, places in groups.items():
        for start in range(0, len(places), chunk):
            some = places[start : start + chunk]
            arrays = {name: column[some] for name, column in numbers.items()}
            gate = grid.make(dict(zip(words, chosen, strict=True)) | arrays)
            exits[some] = exit_step(ask(gate, read.signals))
    return exits
