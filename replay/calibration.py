"""Calibration: the cheapest setting of a gate that keeps its promise on the pool."""

import json
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from c4.errors import ConfigError, RunError
from c4.gates.kinds import Gate
from c4.gates.registry import make_gate
from c4.gates.signals import Floats, Longs
from c4.replay.certificates import Control, certify, p_values, trajectories_needed
from c4.replay.decisions import split_decisions
from c4.replay.grids import Grid, Value, grid_exits
from c4.replay.pools import Pools, PoolShare, RunSubset
from c4.replay.splits import RunSplit
from c4.store.arrays import BoolArray
from c4.store.manifest import content_checksum
from c4.store.runs import Run
from c4.store.storage import list_files, put_file, read_file, remove_leftovers
from c4.tasks import AnswerReading, Family

TOLERANCE = 2.0
"""Points of accuracy that may be lost, as in the paper."""
NOT_OURS = "not a file that `c4 calibrate` wrote"


class Loss(StrEnum):
    """What counts against a setting, per trajectory."""

    DIFFERS = "differs"  # the answer is not the full decode's
    BECOMES_WRONG = "becomes-wrong"  # it was right and is not any more


@dataclass(frozen=True, kw_only=True)
class Requirement:
    """What a setting must keep on the pool to be chosen."""

    tolerance: float = TOLERANCE
    """Points of accuracy that may be lost on any task."""
    risk: float | None = None
    """With a guarantee instead: the risk that may not be exceeded."""
    delta: float = 0.1
    """How often the guarantee may fail."""
    loss: Loss = Loss.DIFFERS
    control: Control = Control.FIXED_SEQUENCE

    def __post_init__(self) -> None:
        if self.tolerance < 0:
            raise ConfigError(f"tolerance is at least 0 points, not {self.tolerance}")
        for name in ("risk", "delta"):
            value = getattr(self, name)
            if value is not None and not 0 < value < 1:
                raise ConfigError(f"{name} lies between 0 and 1, not at {value}")


@dataclass(frozen=True)
class Calibration:
    """A whole grid on the pool, and what was chosen."""

    grid: Grid
    requirement: Requirement
    table: pl.DataFrame
    """One row per setting: parameters, steps, accuracy and drop per task, what it keeps."""
    chosen: int | None
    """The row that keeps the promise with the fewest steps; None if none does."""
    n: int
    """Trajectories in the pool."""
    seconds: float = 0.0
    """That the search took."""

    @property
    def parameters(self) -> dict[str, Value] | None:
        """The chosen setting."""
        return None if self.chosen is None else self._setting(self.chosen)

    @property
    def pareto(self) -> pl.DataFrame:
        """Settings that no other beats in steps and in the worst drop alike."""
        return self.table.filter("pareto").sort("steps")

    @property
    def neighbours(self) -> pl.DataFrame:
        """The chosen setting and those one value away: is the optimum flat or a spike?"""
        if self.chosen is None:
            return self.table.clear()
        return self.table[sorted([self.chosen, *self.grid.neighbours(self.chosen)])]

    @property
    def statement(self) -> str:
        """What a reader may quote."""
        return _statement(self)

    def _setting(self, index: int) -> dict[str, Value]:
        row = self.table.row(index, named=True)
        return {name: row[name] for name in self.grid.values}


def calibrate(grid: Grid, pool: Sequence[RunSubset], requirement: Requirement) -> Calibration:
    """Try every setting on the pool."""
    start = time.perf_counter()
    exits = [grid_exits(grid, subset.signals.signals) for subset in pool]
    n = sum(map(len, pool))
    columns: dict[str, Any] = {
        name: [setting[name] for setting in grid.settings()] for name in grid.values
    }
    steps = sum(c.steps_at(e).sum(axis=1) for c, e in zip(pool, exits, strict=True)) / n
    drops = []
    losses: Longs = np.zeros(len(grid), dtype=np.int64)
    for subset, exit_at in zip(pool, exits, strict=True):
        correct, full = _accuracy(subset, exit_at)
        columns[f"accuracy_{subset.name}"] = correct.mean(axis=1)
        drops.append(100 * (full.mean() - correct.mean(axis=1)))
        losses += _losses(subset, exit_at, correct, full, requirement.loss).sum(axis=1)
    worst: Floats = np.max(drops, axis=0)
    keeps = _keeps(grid, requirement, worst, losses, n)
    columns |= {"steps": steps, "worst_drop": worst, "losses": losses}
    if requirement.risk is not None:
        columns["p_value"] = p_values(losses, n, requirement.risk)
    columns |= {"keeps": keeps, "pareto": pareto_front(steps, worst)}
    chosen = int(np.where(keeps, steps, np.inf).argmin()) if keeps.any() else None
    seconds = time.perf_counter() - start
    return Calibration(grid, requirement, pl.DataFrame(columns), chosen, n, seconds)


def evaluate_setting(calibration: Calibration, subsets: Sequence[RunSubset]) -> pl.DataFrame:
    """The chosen setting on trajectories that had no part in choosing it, per task."""
    if calibration.parameters is None:
        return pl.DataFrame()
    one = Grid(calibration.grid.gate, {k: [v] for k, v in calibration.parameters.items()})
    rows = []
    for subset in subsets:
        exits = grid_exits(one, subset.signals.signals)
        correct, full = _accuracy(subset, exits)
        steps = subset.steps_at(exits)
        rows.append(
            {
                "task": subset.name,
                "n": len(subset),
                "accuracy": float(correct.mean()),
                "full_accuracy": float(full.mean()),
                "steps": float(steps.mean()),
                "saving": float(1 - steps.mean() / subset.run.shape.budget),
                "fired": float((exits > 0).mean()),
                "identical": float(subset.same_at(exits).mean()),
            }
        )
    return pl.DataFrame(rows)


def _accuracy(subset: RunSubset, exits: Any) -> tuple[BoolArray, BoolArray]:
    """Whether each setting is right, and whether the full decode is. (settings, n) and (n,)"""
    correct = subset.correct_at(exits)
    full = subset.correct_at(np.zeros((1, len(subset)), dtype=np.int32))[0]
    return correct, full


def _losses(
    subset: RunSubset, exits: Any, correct: BoolArray, full: BoolArray, loss: Loss
) -> BoolArray:
    return ~subset.same_at(exits) if loss is Loss.DIFFERS else full & ~correct


def _keeps(grid: Grid, requirement: Requirement, worst: Floats, losses: Longs, n: int) -> BoolArray:
    if requirement.risk is None:
        return worst <= requirement.tolerance + 1e-9  # 1 in 50 is 2.0 points, whatever floats say
    return certify(
        losses,
        n,
        risk=requirement.risk,
        delta=requirement.delta,
        control=requirement.control,
        order=grid.from_strict_to_loose(),
    )


def pareto_front(steps: Floats, drop: Floats) -> BoolArray:
    """Settings that no other beats in both."""
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
        return (
            f"on {n} pool trajectories this setting loses at most "
            f"{max(0.0, worst):.1f} points on any task"
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


def _shortfall(calibration: Calibration, risk: float) -> str:
    """How many trajectories would have certified the setting on which it all drawings.

    A fixed sequence ends at once if its first setting fails; else any setting might have passed.
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


def save_calibration(path: Path, calibration: Calibration, splits: Sequence[RunSplit]) -> None:
    """Freeze the chosen setting with everything needed to find it again."""
    frozen = {
        "gate": calibration.grid.gate,
        "parameters": calibration.parameters,
        "reading": asdict(splits[0].pool.run.reading),
        "statement": calibration.statement,
        "requirement": asdict(calibration.requirement),
        "grid": {name: list(values) for name, values in calibration.grid.values.items()},
        "pool": [
            {
                "identity": split.share.identity,
                "trajectories": sorted(split.share.trajectories),
                "split": split.summary,
            }
            for split in splits
        ],
        "seconds": round(calibration.seconds, 3),
        "table": calibration.table.to_dicts(),
        "c4": version("c4-dlm"),
    }
    frozen["checksum"] = content_checksum(frozen)
    remove_leftovers(path.parent, lambda name: name == path.name)
    put_file(path, (json.dumps(frozen, indent=1) + "\n").encode())


@dataclass(frozen=True)
class FrozenSetting:
    """A setting that a calibration chose, and what it was chosen on."""

    file: str
    gate: str
    parameters: Mapping[str, Value]
    reading: AnswerReading
    """How answers were read when it was chosen; it promises nothing under another reading."""
    pool: Sequence[PoolShare]

    @property
    def label(self) -> str:
        """What its decisions go by."""
        return f"{self.gate} ({self.file})"

    def check_reading(self, reading: AnswerReading) -> None:
        """Refuse to use the setting under another reading than it was chosen under."""
        if reading != self.reading:
            raise ConfigError(
                f"{self.file} was chosen under --reading {self.reading.style} --ending "
                f"{self.reading.ending} --grader {self.reading.grader}, and {reading.style}, "
                f"{reading.ending} and {reading.grader} are asked for; leave these options out, "
                "or calibrate with them"
            )

    def make(self, family: Family) -> Gate:
        return make_gate(self.gate, family, **self.parameters)

    def split(self, run: Run, decisions: pl.DataFrame) -> pl.DataFrame:
        """Tell pool and held out apart in its decisions, if it was chosen on the run's examples."""
        pool = Pools(self.pool).chosen_on(run.manifest.identity)
        return split_decisions(decisions, self.label, pool) if pool else decisions


def read_shares(pool: Sequence[Mapping[str, Any]]) -> list[PoolShare]:
    """What a calibration file says that its setting was chosen on."""
    return [PoolShare(dict(p["identity"]), frozenset(p["trajectories"])) for p in pool]


HEAD = 1000
"""Bytes of a file in which its gate is named, if a calibration wrote it."""


def is_calibration(path: Path) -> bool:
    """Whether a file begins as a calibration does; it may still be damaged."""
    try:
        # The gate stands first, so a large file of another kind need not be read to its end.
        return re.match(rb'\s*\{\s*"gate"', read_file(path, HEAD)) is not None
    except (OSError, RunError):
        return False


def calibration_files(folder: Path) -> list[Path]:
    """The files in a folder that begin as calibrations do."""
    files = (path for path in list_files(folder) if path.suffix == ".json")
    return [path for path in files if is_calibration(path)]


def check_calibration(path: Path) -> ConfigError | None:
    """What is wrong with a calibration file; one that chose no setting is sound."""
    try:
        load_calibration(path)
    except NoSettingError:
        return None
    except ConfigError as error:
        return error
    return None


class NoSettingError(ConfigError):
    """A calibration in which no setting kept what was asked of it."""


def check_unedited(path: Path, frozen: Mapping[str, Any]) -> None:
    """Refuse a calibration whose content is not what was written."""
    content = {name: value for name, value in frozen.items() if name != "checksum"}
    if "checksum" in frozen and frozen["checksum"] != content_checksum(content):
        raise ConfigError(
            f"{path}: edited or damaged since `c4 calibrate` wrote it (its content does not match "
            "its checksum); make a new one with `c4 calibrate`, or give your own values with --set"
        )


def load_calibration(path: Path) -> FrozenSetting:
    """The setting that a calibration froze."""
    try:
        frozen = json.loads(read_file(path))
        if not isinstance(frozen, dict):
            raise TypeError(f"it holds a {type(frozen).__name__}")
        check_unedited(path, frozen)
        gate, parameters, statement = (frozen[k] for k in ("gate", "parameters", "statement"))
        pool = read_shares(frozen["pool"])
        reading = AnswerReading.parse(**frozen["reading"])
        setting = FrozenSetting(path.name, str(gate), dict(parameters or {}), reading, pool)
        str(frozen["checksum"])
    except KeyError as error:
        if {"gate", "parameters", "table"} <= frozen.keys():
            raise ConfigError(
                f"{path}: written by an earlier c4 (it has no {error}); calibrate again"
            ) from error
        raise ConfigError(f"{path}: {NOT_OURS} (it has no {error})") from error
    except FileNotFoundError:
        raise ConfigError(f"no file {path}; `c4 calibrate` writes one") from None
    except (OSError, RunError, ValueError, TypeError, RecursionError) as error:
        raise ConfigError(f"{path}: {NOT_OURS} ({error})") from error
    if parameters is None:
        raise NoSettingError(f"{path}: that calibration chose no setting: {statement}")
    return setting
