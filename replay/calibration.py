"""Calibration: find the cheapest setting of a gate that meets a requirement on the pool."""

import json
import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from importlib.metadata import version
from typing import Any

import numpy as np
import polars as pl

from c4.errors import ConfigError
from c4.gates.calibration_files import column_of
from c4.gates.registry import find_gate
from c4.gates.signals import Floats, Ints, Longs
from c4.plugins.parameters import Value
from c4.replay.certificates import Control, certify, p_values, trajectories_needed
from c4.replay.exits import RunSubset
from c4.replay.grids import Grid, grid_exits, undirected
from c4.replay.pools import RunSplit
from c4.store.arrays import BoolArray
from c4.store.locations import Location
from c4.store.manifest import content_checksum
from c4.store.storage import put_file, remove_leftovers

log = logging.getLogger(__name__)

TOLERANCE = 2.0
"""Default loss of accuracy that is allowed, in percentage points, as in the paper."""


class Loss(StrEnum):
    """Criterion by which a trajectory counts as lost."""

    DIFFERS = "differs"  # the answer differs from the full decode's
    BECOMES_WRONG = "becomes-wrong"  # the full decode is right and the exit is wrong


@dataclass(frozen=True, kw_only=True)
class Requirement:
    """Conditions that a setting must meet on the pool to be chosen."""

    tolerance: float = TOLERANCE
    """Accuracy that may be lost on any task, in percentage points."""
    risk: float | None = None
    """Risk to certify instead of the tolerance; None to use the tolerance."""
    delta: float = 0.1
    """Maximum probability that the certificate is wrong."""
    loss: Loss = Loss.DIFFERS
    control: Control = Control.FIXED_SEQUENCE

    def __post_init__(self) -> None:
        if not self.tolerance >= 0:  # also rejects NaN
            raise ConfigError(f"tolerance is at least 0 points, not {self.tolerance}")
        for name in ("risk", "delta"):
            value = getattr(self, name)
            if value is not None and not 0 < value < 1:
                raise ConfigError(f"{name} lies between 0 and 1, not at {value}")


@dataclass(frozen=True)
class Calibration:
    """Results of a whole grid on the pool, and the chosen setting."""

    grid: Grid
    requirement: Requirement
    table: pl.DataFrame
    """One row per setting: parameters, accuracy per task, steps, worst drop, `keeps`."""
    chosen: int | None
    """The row that meets the requirement with the fewest steps; None if none does."""
    sizes: Mapping[str, int]
    """Number of pool trajectories used, by task."""
    not_gradable: Mapping[str, int] = field(default_factory=dict)
    """Number of trajectories excluded, by task, because an exit of theirs could not be graded."""
    seconds: float = 0.0
    """Duration of the search in seconds."""

    @property
    def n(self) -> int:
        """Number of pool trajectories used, over all tasks."""
        return sum(self.sizes.values())

    @property
    def parameters(self) -> dict[str, Value] | None:
        """The chosen setting; None if no setting meets the requirement."""
        if self.chosen is None:
            return None
        row = self.table.row(self.chosen, named=True)
        return {name: row[column_of(name)] for name in self.grid.values}

    @property
    def pareto(self) -> pl.DataFrame:
        """Settings that no other setting beats in both steps and worst drop."""
        return self.table.filter("pareto").sort("steps")

    @property
    def neighbours(self) -> pl.DataFrame:
        """The chosen setting and those one value away: is the optimum flat or a spike?"""
        if self.chosen is None:
            return self.table.clear()
        return self.table[sorted([self.chosen, *self.grid.neighbours(self.chosen)])]

    @property
    def statement(self) -> str:
        """The result as one quotable sentence."""
        left_out = ", ".join(f"{count} of {name}" for name, count in self.not_gradable.items())
        note = f"; left out, because the machine failed to grade them: {left_out}"
        idle = "" if self.fired is None or self.fired > 0 else f"; {_idleness(self)}"
        return _statement(self) + idle + (note if left_out else "")

    @property
    def fired(self) -> float | None:
        """Fraction of the pool on which the chosen setting fires; None if none was chosen."""
        return None if self.chosen is None else float(self.table["fired"][self.chosen])


def calibrate(grid: Grid, pool: Sequence[RunSubset], requirement: Requirement) -> Calibration:
    """Try every setting on the pool and choose the cheapest that meets the requirement."""
    start = time.perf_counter()
    trials = {subset.name: _try(grid, subset) for subset in pool}
    for name, trial in trials.items():
        if not trial.n:
            raise ConfigError(
                f"the machine failed to grade any of the {trial.not_gradable} trajectories of "
                f"{name}; try again when it has processes and memory to spare"
            )
    sizes = {name: trial.n for name, trial in trials.items()}
    n = sum(sizes.values())
    columns: dict[str, Any] = {}
    for name, values in grid.values.items():
        tried: list[Value] = [setting[name] for setting in grid.settings()]
        has_words = any(isinstance(value, str) for value in values)
        columns[column_of(name)] = [str(value) for value in tried] if has_words else tried
    for name, trial in trials.items():
        columns[f"accuracy_{name}"] = trial.correct.mean(axis=1)
    steps = sum(trial.steps.sum(axis=1) for trial in trials.values()) / n
    fired = sum(trial.fired.sum(axis=1) for trial in trials.values()) / n
    losses: Longs = sum(t.losses(requirement.loss).sum(axis=1) for t in trials.values())
    drops = [100 * (t.full.mean() - t.correct.mean(axis=1)) for t in trials.values()]
    worst: Floats = np.max(drops, axis=0)
    columns |= {"steps": steps, "fired": fired, "worst_drop": worst, "losses": losses}
    if requirement.risk is None:
        keeps = worst <= requirement.tolerance + 1e-9  # 1 in 50 is 2.0 points despite rounding
    else:
        columns["p_value"] = p_values(losses, n, requirement.risk)
        keeps = _certified(grid, requirement, requirement.risk, losses, n)
    columns |= {"keeps": keeps, "pareto": pareto_front(steps, worst)}
    chosen = int(np.where(keeps, steps, np.inf).argmin()) if keeps.any() else None
    left_out = {name: t.not_gradable for name, t in trials.items() if t.not_gradable}
    seconds = time.perf_counter() - start
    return Calibration(grid, requirement, pl.DataFrame(columns), chosen, sizes, left_out, seconds)


def evaluate_setting(calibration: Calibration, subsets: Sequence[RunSubset]) -> pl.DataFrame:
    """Evaluate the chosen setting, per task, on trajectories that were not used to choose it.

    Means are null for tasks without a gradable trajectory.
    """
    if calibration.parameters is None:
        return pl.DataFrame()
    one = Grid(calibration.grid.gate, {k: [v] for k, v in calibration.parameters.items()})
    rows = []
    for subset in subsets:
        trial = _try(one, subset)
        values = {
            "accuracy": trial.correct,
            "full_accuracy": trial.full,
            "steps": trial.steps,
            "saving": 1 - trial.steps / subset.run.shape.budget,
            "fired": trial.fired,
            "identical": trial.same,
        }
        facts = {"task": subset.name, "n": trial.n, "not_gradable": trial.not_gradable}
        means = {name: float(v.mean()) if v.size else None for name, v in values.items()}
        rows.append(facts | means)
    return pl.DataFrame(rows)


@dataclass(frozen=True)
class _Trial:
    """Results of a grid on the trajectories of one run that are gradable under all settings.

    A trajectory that is not gradable under one setting is excluded for all, so that all settings
    are compared on the same trajectories. Whether the machine fails to grade does not depend on how
    a trajectory was decoded, so the exclusion favours no setting.
    """

    steps: Ints
    """(settings, n), like the next three fields."""
    fired: BoolArray
    same: BoolArray
    correct: BoolArray
    full: BoolArray
    """Whether the full decode is right. (n,)"""
    not_gradable: int
    """Number of trajectories excluded."""

    @property
    def n(self) -> int:
        return len(self.full)

    def losses(self, loss: Loss) -> BoolArray:
        """Whether each setting loses each trajectory. (settings, n)"""
        return ~self.same if loss is Loss.DIFFERS else self.full & ~self.correct


def _try(grid: Grid, subset: RunSubset) -> _Trial:
    exits = grid_exits(grid, subset.signals, subset.run.cells())
    correct, gradable = subset.grades_at(exits)
    full, full_gradable = subset.grades_at(np.zeros((1, len(subset)), dtype=np.int32))
    keep = gradable.all(axis=0) & full_gradable[0]  # (n,)
    return _Trial(
        steps=subset.steps_at(exits)[:, keep],
        fired=exits[:, keep] > 0,
        same=subset.same_at(exits)[:, keep],
        correct=correct[:, keep],
        full=full[0, keep],
        not_gradable=int((~keep).sum()),
    )


def _certified(
    grid: Grid, requirement: Requirement, risk: float, losses: Longs, n: int
) -> BoolArray:
    """Whether each setting is certified; a fixed sequence tries the most cautious first."""
    order = None
    if requirement.control is Control.FIXED_SEQUENCE:
        order = grid.from_strict_to_loose()
        for name in undirected(grid):
            log.warning(
                "a higher %s is taken to stop later, so the highest is tried first; if a lower one "
                "stops later, the gate must declare it: c4.gates.parameter(…, stricter=-1)",
                name,
            )
    delta, control = requirement.delta, requirement.control
    return certify(losses, n, risk=risk, delta=delta, control=control, order=order)


def pareto_front(steps: Floats, drop: Floats) -> BoolArray:
    """Whether each setting is on the Pareto front of steps and accuracy drop."""
    order = np.lexsort((drop, steps))
    best = np.minimum.accumulate(np.append(np.inf, drop[order]))[:-1]
    front = np.zeros(len(steps), dtype=np.bool_)
    front[order] = drop[order] < best
    return front


def _statement(calibration: Calibration) -> str:
    requirement, n = calibration.requirement, calibration.n
    if requirement.risk is None:
        if calibration.chosen is None:
            limit = f"{requirement.tolerance:g} points"
            return f"no setting stays within {limit} on every task of the pool"
        worst = float(calibration.table["worst_drop"][calibration.chosen])
        coarsest = 100 / min(calibration.sizes.values())
        return (
            f"on {n} pool trajectories this setting loses at most {max(0.0, worst):.1f} points on "
            f"any task, where one answer is up to {coarsest:.1f}"
        )
    event = {
        Loss.DIFFERS: "the answer differs from the full decode's",
        Loss.BECOMES_WRONG: "a right answer becomes wrong",
    }[requirement.loss]
    if calibration.chosen is not None:
        return (
            f"with probability at least {1 - requirement.delta:g} over the draw of the {n} "
            f"calibration trajectories, {event} on at most {requirement.risk:.1%} of trajectories "
            f"drawn like them (Learn-Then-Test, exact binomial, {requirement.control})"
        )
    shortfall = _shortfall(calibration, requirement.risk)
    return f"no setting can be certified with {n} trajectories; {shortfall}"


def _idleness(calibration: Calibration) -> str:
    """Explain why a setting that never fires was chosen, and suggest how to find another."""
    if not (calibration.table["fired"] > 0).any():
        return (
            "no setting that was tried ever fires on the pool, so this one saves nothing; try "
            "looser values with --set"
        )
    allow = "--tolerance" if calibration.requirement.risk is None else "--risk"
    return (
        "it never fires on the pool, so it saves nothing: all settings that fire lose too much; "
        f"allow more with {allow}"
    )


def _shortfall(calibration: Calibration, risk: float) -> str:
    """State how many trajectories would have certified the decisive setting.

    With a fixed sequence that is the first setting; with Bonferroni, the one with fewest losses.
    """
    requirement, losses = calibration.requirement, calibration.table["losses"].to_numpy()
    if requirement.control is Control.FIXED_SEQUENCE:
        which, level = "most cautious setting, which is tried first,", requirement.delta
        share = float(losses[calibration.grid.from_strict_to_loose()[0]]) / calibration.n
    else:
        which, level = "best setting", requirement.delta / len(calibration.grid)
        share = float(losses.min()) / calibration.n
    needed = trajectories_needed(share, risk=risk, level=level, beyond=calibration.n)
    if needed is None:
        return f"the {which} loses {share:.1%}, too much for more of them to help"
    return f"the {which} loses {share:.1%}, and at that rate {needed} would be needed"


def save_calibration(path: Location, calibration: Calibration, splits: Sequence[RunSplit]) -> None:
    """Write the chosen setting to a file, with everything needed to reproduce the choice."""
    grid = calibration.grid
    if not isinstance(grid.gate, str):
        raise ConfigError(
            f"the gate {grid.name} was defined in a notebook, in a script or inside a function, so "
            "no command could find it again; write it into a file, such as my_gates.py, import it "
            "from there, and calibrate again"
        )
    gate = find_gate(grid.gate)
    frozen = {
        "gate": gate.name,
        "parameters": calibration.parameters,
        "reading": asdict(splits[0].pool.run.reading),
        "statement": calibration.statement,
        "requirement": asdict(calibration.requirement),
        "grid": {name: list(values) for name, values in grid.values.items()},
        "pool": [
            {
                "identity": split.share.identity,
                "trajectories": sorted(split.share.trajectories),
                "split": split.summary,
            }
            for split in splits
        ],
        "not_gradable": dict(calibration.not_gradable),
        "seconds": round(calibration.seconds, 3),
        "table": calibration.table.to_dicts(),
        "c4": version("c4-dlm"),
    }
    if gate.source_sha256 is not None:
        frozen["gate_sha256"] = gate.source_sha256
    frozen["checksum"] = content_checksum(frozen)
    remove_leftovers(path.parent, lambda name: name == path.name)
    put_file(path, (json.dumps(frozen, indent=1) + "\n").encode())
