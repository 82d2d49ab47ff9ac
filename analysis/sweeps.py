"""Sweeps over H, the holes that CCTC tolerates; over shapes; and over CVEE's settings on WINO."""

import json
from collections.abc import Mapping
from typing import Any

import polars as pl

from c4.analysis.paired import MOST_LOST
from c4.analysis.paper_names import in_order
from c4.gates.gate import Gate
from c4.gates.registry import make_gate
from c4.record.settings import MethodChoice, resolve_methods
from c4.replay.grids import Grid
from c4.store.labels import Label, method_name
from c4.tasks import Task

H_SWEEP = pl.Schema(
    {
        "model": pl.String(),
        "task": pl.String(),
        "family": pl.String(),
        "H": pl.Int64(),  # null if unlimited
        "n": pl.Int64(),
        "accuracy": pl.Float64(),
        "steps": pl.Float64(),
        "confirmed": pl.Float64(),  # share of tokens confirmed by CCTC
    }
)
WINO_GRID = Grid("cvee", {"tau": [0.7, 0.8, 0.9], "p_min": [3, 5, 8, 12, 16], "gamma": [2, 4, 8]})
"""The paper's settings of CVEE on WINO."""
WINO = pl.Schema(
    {
        "model": pl.String(),
        "task": pl.String(),
        "cohort": pl.String(),
        "pool": pl.Boolean(),
        "settings": pl.Int64(),  # number of settings of CVEE tried
        "wino_accuracy": pl.Float64(),
        "wino_steps": pl.Float64(),
        "deployed_accuracy": pl.Float64(),
        "deployed_steps": pl.Float64(),
        "best_accuracy": pl.Float64(),  # null if `deployed` is within tolerance, or no setting is
        "best_steps": pl.Float64(),
    }
)

SHOWN_IN = {"c4": "c4 figures h-sweep", "wino+cvee": "c4 report scaling"}
"""Swept methods, and the commands that show the points of each sweep."""


def in_sweep(label: str) -> bool:
    """Whether a label is a point of a sweep: C⁴ with only H changed, or a WINO+CVEE variant.

    Other variants, such as a calibrated setting, were chosen by a user and are listed beside their
    method.
    """
    name = method_name(label)
    return label != name and name in SHOWN_IN and (name != "c4" or _only_h(label))


def of_sweeps(frame: pl.DataFrame) -> pl.Series:
    """Whether each row is a point of a sweep."""
    points = [label for label in frame["method"].unique() if in_sweep(label)]
    return frame["method"].is_in(points)


def h_sweep(outcomes: pl.DataFrame, totals: pl.DataFrame) -> pl.DataFrame:
    """Results of C⁴ for every H that was run, if there are at least two. See `H_SWEEP`."""
    confirmed = outcomes.group_by("cohort", "method").agg(pl.col("confirmed").mean())
    rows = []
    for row in totals.join(confirmed, on=["cohort", "method"]).iter_rows(named=True):
        rule = json.loads(row["settings"]).get("rule") or {}
        if method_name(row["method"]) == "c4" and "H" in rule and _only_h(row["method"]):
            hole = None if rule["H"] == "inf" else int(rule["H"])
            rows.append({name: row.get(name) for name in H_SWEEP} | {"H": hole})
    frame = pl.DataFrame(rows, schema=H_SWEEP)
    return in_order(frame.filter(pl.len().over("model", "task") > 1), "H")


def _only_h(label: str) -> bool:
    """Whether no setting other than H was changed."""
    return all(change.name == "H" for change in Label.parse(label).changes)


def scaling_table(totals: pl.DataFrame) -> pl.DataFrame:
    """Totals of methods under every shape, for models and tasks with several shapes or a cache.

    Columns: those of the totals, and `blocks`, the number of blocks.
    """
    frame = totals.with_columns(blocks=pl.col("length") // pl.col("block_length"))
    shapes = pl.struct("length", "budget", "block_length").n_unique().over("model", "task")
    with_cache = [
        label
        for label in totals["method"].unique()
        if any(change.name == "cache" for change in Label.parse(label).changes)
    ]
    cached = pl.col("method").is_in(with_cache).any().over("model", "task")
    return in_order(
        frame.filter((shapes > 1) | cached), before=["length", "budget", "block_length"]
    )


def wino_gates(task: Task) -> dict[str, Gate]:
    """CVEE with every setting of the paper's sweep, by the label of the equivalent run."""
    gates = {}
    for setting in WINO_GRID.settings():
        words = [f"cvee.{name}={value}" for name, value in setting.items()]
        (method,) = resolve_methods(MethodChoice(["wino+cvee"], words), task)
        gates[method.label] = make_gate("cvee", **method.gate_settings)
    return gates


def wino_table(totals: pl.DataFrame) -> pl.DataFrame:
    """Compare WINO, WINO with CVEE as deployed, and the fastest setting within tolerance of WINO.

    Expects one cohort per model and task. See `WINO`.
    """
    rows = []
    keys = ["model", "task", "cohort", "pool"]
    for key, group in totals.group_by(keys, maintain_order=True):
        by_method = {row["method"]: row for row in group.iter_rows(named=True)}
        wino, deployed = by_method.get("wino"), by_method.get("wino+cvee")
        if wino is None or deployed is None:
            continue
        variants = [r for m, r in by_method.items() if method_name(m) == "wino+cvee"]
        holding = [r for r in variants if _holds(r, wino)]
        best = min(holding, key=lambda r: r["steps"], default=None)
        if deployed["accuracy"] is None or _holds(deployed, wino):
            best = None
        numbers = {
            f"{name}_{number}": row and row[number]
            for name, row in (("wino", wino), ("deployed", deployed), ("best", best))
            for number in ("accuracy", "steps")
        }
        rows.append({**dict(zip(keys, key, strict=True)), "settings": len(variants), **numbers})
    return in_order(pl.DataFrame(rows, schema=WINO))


def _holds(variant: Mapping[str, Any], wino: Mapping[str, Any]) -> bool:
    """Whether a variant is graded and stays within tolerance of WINO's accuracy."""
    if variant["accuracy"] is None or wino["accuracy"] is None:
        return False
    return bool(100 * (wino["accuracy"] - variant["accuracy"]) <= MOST_LOST)
