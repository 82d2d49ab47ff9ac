"""`c4.calibrate`: choose the setting of a gate and evaluate it on held-out examples."""

import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

import polars as pl

from c4._gates import NAMES
from c4._html import facts_table, frame_table
from c4._run import RunLike, as_runs
from c4.errors import ConfigError
from c4.gates import Gate, make_gate
from c4.gates.gate import is_gate
from c4.gates.registry import GateKind
from c4.replay import (
    Calibration,
    Requirement,
    RunSplit,
    evaluate_setting,
    make_grid,
    save_calibration,
    split_runs,
)
from c4.replay import calibrate as calibrate_grid
from c4.store.locations import Location, parse_location


@dataclass(frozen=True, repr=False, kw_only=True)
class Calibrated(Calibration):
    """Calibration of a gate: the chosen setting, its pool, and the grid that was tried."""

    splits: Sequence[RunSplit]
    held_out: pl.DataFrame
    """Results of the setting, per task, on trajectories that were not used to choose it."""

    @property
    def gate(self) -> Gate:
        """The gate with the chosen setting, ready for `run.replay`."""
        if self.parameters is None:
            raise ConfigError(f"no setting was chosen: {self.statement}")
        return make_gate(self.grid.gate, **self.parameters)

    def save(self, path: str | Location) -> None:
        """Save the setting to a file for `c4 replay --config` and other commands."""
        save_calibration(parse_location(path), self, self.splits)

    def __repr__(self) -> str:
        return f"<Calibrated {self.grid.name} {self._chosen}; {self.statement}>"

    def _repr_html_(self) -> str:
        facts = {"chosen": self._chosen, "statement": self.statement}
        facts |= {"split": "; ".join(split.statement for split in self.splits)}
        shown = facts_table(f"{self.grid.name}, calibrated", facts)
        return shown + ("" if self.held_out.is_empty() else frame_table(self.held_out))

    @property
    def _chosen(self) -> str:
        pairs = (
            f"{name}={value:g}" if isinstance(value, float) else f"{name}={value}"
            for name, value in (self.parameters or {}).items()
        )
        return ", ".join(pairs) or "no setting"


def calibrate(
    runs: RunLike | Sequence[RunLike],
    gate: str | type[Gate] = "cvee",
    promise: Requirement | None = None,
    *,
    pool: int | None = None,
    unsafe_code: bool = False,
    **ranges: Any,
) -> Calibrated:
    """Choose the cheapest setting of a gate that meets a requirement on the runs' pools.

    Args:
        runs: one recording per task, as a run or its folder.
        gate: name or class of the gate.
        promise: the requirement; by default, a loss of at most two points on any task.
            `Requirement(risk=0.05, delta=0.1)` certifies a risk instead.
        pool: use trajectories numbered below this as the pool, instead of those set aside.
        ranges: values to try for a parameter: `gamma=2`, `tau=[0.6, 0.7]`, `tau="0.5:0.9:0.1"`.
    """
    if promise is not None and not isinstance(promise, Requirement):
        raise ConfigError(
            f"{promise!r} is no promise; write c4.Requirement(tolerance=2.0) for points of "
            "accuracy, or c4.Requirement(risk=0.05, delta=0.1) for a certificate"
        )
    texts = {name: _range_text(values) for name, values in ranges.items()}
    grid = make_grid(_kind(gate), texts)
    splits = split_runs(as_runs(runs), pool, gate=grid.gate, unsafe_code=unsafe_code)
    found = calibrate_grid(grid, [split.pool for split in splits], promise or Requirement())
    rest = [split.held_out for split in splits if split.held_out]
    return Calibrated(**vars(found), splits=splits, held_out=evaluate_setting(found, rest))


def _kind(gate: Any) -> GateKind:
    """Return the name by which commands can find a gate, or its class if no module has it."""
    if isinstance(gate, str):
        return gate
    if not isinstance(gate, type) and is_gate(gate):
        raise ConfigError(
            f"{gate!r} is one setting already; give its class, {type(gate).__name__}, and the "
            "values to try as arguments: gamma=2, tau=[0.6, 0.7]"
        )
    if isinstance(gate, type) and is_gate(gate):
        module = sys.modules.get(gate.__module__)
        has_file = gate.__module__ != "__main__" and getattr(module, "__file__", None) is not None
        name = gate.__qualname__
        is_found = has_file and getattr(module, name, None) is gate
        return NAMES.get(gate) or (f"{gate.__module__}:{name}" if is_found else gate)
    raise ConfigError(f"{gate!r} is neither the name nor the class of a gate")


def _range_text(values: Any) -> str:
    if isinstance(values, str) or not isinstance(values, Iterable):
        return str(values)
    return ",".join(str(one.value if isinstance(one, Enum) else one) for one in values)
