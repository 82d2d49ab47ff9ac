"""Cohorts: decodes of the same examples by the same weights in the same shape.

Only results of one cohort may be pooled or paired. Every frame has a cohort column. One cohort per
model and task is shown; tables name the others.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import polars as pl

from c4.analysis.paper_names import in_order, spell_shape
from c4.replay.pools import SET_ASIDE, Pools
from c4.store.labels import Label
from c4.store.manifest import conditions
from c4.store.runs import Run

PLACE = {
    "model": pl.String(),
    "task": pl.String(),
    "family": pl.String(),
    "cohort": pl.String(),  # see `cohort_key`; only rows of one cohort are paired
}
"""Columns that identify the origin of a row, in every frame of examples or methods."""

COHORTS = pl.Schema(
    {
        **PLACE,
        "source": pl.String(),  # of the examples: embedded, hub or file
        "length": pl.Int32(),
        "budget": pl.Int32(),
        "block_length": pl.Int32(),
        "methods": pl.Int64(),  # number of methods with results, without user-defined settings
        "examples": pl.Int64(),  # number outside the calibration pool
        "pooled": pl.Int64(),  # number inside it
        "created": pl.String(),
        "main": pl.Boolean(),  # whether this cohort is shown for its model and task
    }
)
SHAPE = ("length", "budget", "block_length")


def cohort_key(identity: Mapping[str, Any]) -> str:
    """A short hash of a run's conditions: its examples, model, shape and number format."""
    shared = json.dumps(conditions(identity), sort_keys=True)
    return hashlib.sha256(shared.encode()).hexdigest()[:12]


def cohort_columns(run: Run, pools: Pools) -> dict[str, pl.Expr]:
    """Expressions of the `PLACE` columns and `pool` for a frame with a column `trajectory`."""
    identity = run.manifest.identity
    return {
        "model": pl.lit(run.model),
        "task": pl.lit(run.task_name),
        "family": pl.lit(str(run.task.family)),
        "cohort": pl.lit(cohort_key(identity)),
        "pool": pl.col("trajectory").is_in(sorted(pools.of(run))),
    }


def held_out(frame: pl.DataFrame) -> pl.DataFrame:
    """Drop the examples that calibration may have seen, unless a cohort has no others."""
    others = (~pl.col("pool")).any().over("cohort")
    return frame.filter(~(pl.col("pool") & others))


def cohort_table(
    runs: Sequence[Run], gates: Sequence[str] = (), pools: Pools = SET_ASIDE
) -> pl.DataFrame:
    """Every cohort on disk. See `COHORTS`.

    Args:
        gates: labels of the gates that are replayed over recordings of full decodes.
    """
    members: dict[str, list[Run]] = {}
    for run in runs:
        members.setdefault(cohort_key(run.manifest.identity), []).append(run)
    rows = []
    for cohort, found in members.items():
        run, identity = found[0], found[0].manifest.identity
        indices = {index for one in found for index in one.indices}
        pooled = indices & pools.of(run)
        methods = {one.method for one in found}
        if any(one.is_baseline and one.has_cells for one in found):
            methods.update(gates)
        rows.append(
            {
                "model": run.model,
                "task": run.task_name,
                "family": str(run.task.family),
                "cohort": cohort,
                "source": identity["source"],
                **{name: identity["shape"][name] for name in SHAPE},
                "methods": sum(Label.parse(method).is_plain for method in methods),
                "examples": len(indices - pooled),
                "pooled": len(pooled),
                "created": max(str(r.manifest.environment.get("created", "")) for r in found),
                "own": asdict(run.task.shape) == identity["shape"],
            }
        )
    frame = pl.DataFrame(rows, schema={**COHORTS, "own": pl.Boolean()})
    # Of each model and task, prefer the task's own shape, then the shape that the model has on most
    # tasks of the family, then the most methods, the most examples and the newest run.
    usual = pl.col("task").n_unique().over("model", "family", *SHAPE)
    order = ["own", "usual", "methods", "examples", "created", "cohort"]
    ranked = frame.with_columns(usual=usual).sort(order, descending=True)
    main = ranked.unique(("model", "task"), keep="first")["cohort"]
    frame = frame.with_columns(main=pl.col("cohort").is_in(main.to_list()))
    return in_order(frame.select(COHORTS.names()), "cohort")


def cohort_notes(cohorts: pl.DataFrame) -> list[str]:
    """Notes on which of several cohorts is shown and which are not."""
    notes = []
    several = cohorts.filter(pl.len().over("model", "task") > 1)
    for (model, task), group in several.group_by("model", "task", maintain_order=True):
        (shown,) = group.filter("main").iter_rows(named=True)
        others = [
            f"the same shape with other weights, examples, tokenizer or number format "
            f"({row['cohort']})"
            if spell_shape(row) == spell_shape(shown)
            else spell_shape(row)
            for row in group.filter(~pl.col("main")).to_dicts()
        ]
        notes.append(
            f"{task} on {model}: {spell_shape(shown)} is shown; not shown: {', '.join(others)}; "
            "every shape is in (run: c4 report scaling)"
        )
    return notes


def pool_note(cohorts: pl.DataFrame) -> str:
    """Note on the calibration pool for a table's caption; empty if no example is in it."""
    only = cohorts.filter((pl.col("examples") == 0) & (pl.col("pooled") > 0))
    cut = cohorts.filter((pl.col("examples") > 0) & (pl.col("pooled") > 0))
    notes = []
    if only.height:
        tasks = ", ".join(only["task"].unique(maintain_order=True))
        notes.append(f"only examples that calibration may have seen: {tasks}")
    if cut.height:
        counts = [f"{n} of {task}" for task, n in cut.select("task", "pooled").iter_rows()]
        notes.append(
            f"examples left out because calibration may have seen them: {', '.join(counts)}"
        )
    return "; ".join(notes)
