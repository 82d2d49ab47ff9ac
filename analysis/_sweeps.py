"""Sweeps: over the holes CCTC tolerates, over shapes, and over CVEE on top of WINO."""

import json
from collections.abc import Mapping
from typing import Any

import polars as pl

from c4.analysis._names import in_order
from c4.analysis._paired import past_tolerance

H_SWEEP = pl.Schema(
    {
        "model": pl.String(),
        "task": pl.String(),
        "family": pl.String(),
        "H": pl.Int64(),  # null: unlimited
        "n": pl.Int64(),
        "accuracy": pl.Float64(),
        "steps": pl.Float64(),
        "confirmed": pl.Float64(),  # share of tokens
    }
)


def h_sweep(outcomes: pl.DataFrame, totals: pl.DataFrame) -> pl.DataFrame:
    """C⁴ under every H that was run, where at least two were. See `H_SWEEP`."""
    confirmed = outcomes.group_by("cohort", "method").agg(pl.col("confirmed").mean())
    rows = []
    for row in totals.join(confirmed, on=["cohort", "method"]).iter_rows(named=True):
        rule = json.loads(row["settings"]).get("rule") or {}
        if row["method"].partition(",")[0] == "c4" and "H" in rule and _only_h(row["method"]):
            hole = None if rule["H"] == "inf" else int(rule["H"])
            rows.append({name: row.get(name) for name in H_SWEEP} | {"H": hole})
    frame = pl.DataFrame(rows, schema=H_SWEEP)
    return in_order(frame.filter(pl.len().over("model", "task") > 1), "H")


def _only_h(label: str) -> bool:
    """Whether a label says that nothing but H was changed."""
    changes = label.split(",")[1:]
    return all(change.rpartition(".")[2].strip().startswith("H=") for change in changes)


def scaling_table(totals: pl.DataFrame) -> pl.DataFrame:
    """Methods under every shape that was decoded, of models and tasks with more than one.

    Columns: those of the totals, and blocks.
    """
    frame = totals.with_columns(blocks=pl.col("length") // pl.col("block"))
    shapes = pl.struct("length", "block").n_unique().over("model", "task")
    return in_order(frame.filter(shapes > 1), before=["length", "block"])


def wino_table(totals: pl.DataFrame) -> pl.DataFrame:
    """WINO, CVEE on it as deployed, and the fewest steps that stay within tolerance of WINO.

    Takes one cohort of each model and task. Columns: model, task, pool, and accuracy and steps of
    wino_, deployed_ and best_. Best is null where the deployed setting holds, nothing does, or
    nothing is graded.
    """
    rows = []
    for (model, task, pool), group in totals.group_by("model", "task", "pool", maintain_order=True):
        by_method = {row["method"]: row for row in group.iter_rows(named=True)}
        wino, deployed = by_method.get("wino"), by_method.get("wino+cvee")
        if wino is None or deployed is None:
            continue
        variants = [r for m, r in by_method.items() if m.startswith("wino+cvee")]
        holding = [r for r in variants if _holds(r, wino)]
        best = min(holding, key=lambda r: r["steps"], default=None)
        if deployed["accuracy"] is None or _holds(deployed, wino):
            best = None
        rows.append(
            {"model": model, "task": task, "pool": pool}
            | {f"wino_{k}": wino[k] for k in ("accuracy", "steps")}
            | {f"deployed_{k}": deployed[k] for k in ("accuracy", "steps")}
            | {f"best_{k}": best[k] if best else None for k in ("accuracy", "steps")}
        )
    numbers = [f"{k}_{m}" for k in ("wino", "deployed", "best") for m in ("accuracy", "steps")]
    schema: dict[str, pl.DataType] = {"model": pl.String(), "task": pl.String()}
    schema |= {"pool": pl.Boolean()} | dict.fromkeys(numbers, pl.Float64())
    return in_order(pl.DataFrame(rows, schema=schema))


def _holds(variant: Mapping[str, Any], wino: Mapping[str, Any]) -> bool:
    """Whether a variant is graded, and keeps WINO's accuracy."""
    if variant["accuracy"] is None or wino["accuracy"] is None:
        return False
    return not past_tolerance(100 * (wino["accuracy"] - variant["accuracy"]))
