"""Cohorts: decodes of the same examples by the same weights in the same shape.

Only these may be pooled or paired. Every frame carries its rows' cohort, and of each model and
task one cohort is shown; tables name the others.
"""

import hashlib
import json
import shlex
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import polars as pl

from c4.analysis.names import in_order, spell_shape
from c4.replay.pools import SET_ASIDE, Pools
from c4.store.labels import conditions, is_plain
from c4.store.run_task import task_typed
from c4.store.runs import Run
from c4.tasks.examples import EMBEDDED_SOURCE, HUB_SOURCE

PLACE = {
    "model": pl.String(),
    "task": pl.String(),
    "family": pl.String(),
    "cohort": pl.String(),  # equal where examples, weights and shape are: only those pair
}
"""Columns that say where a row belongs, in every frame of rows or methods."""

COHORTS = pl.Schema(
    {
        **PLACE,
        "source": pl.String(),  # of the examples: embedded, hub or file
        "length": pl.Int32(),
        "budget": pl.Int32(),
        "block_length": pl.Int32(),
        "methods": pl.Int64(),  # that it has results of, settings of users' own aside
        "examples": pl.Int64(),  # outside the calibration pool
        "pooled": pl.Int64(),  # inside it
        "created": pl.String(),
        "again": pl.String(),  # the options that decode with the same weights, shape and source
        "span": pl.String(),  # and those that choose the same examples, decoded as many at once
        "timed": pl.String(),  # those that choose what to time
        "main": pl.Boolean(),  # the one of its model and task that is shown
    }
)
SHAPE = ("length", "budget", "block_length")


def cohort_key(identity: Mapping[str, Any]) -> str:
    """A short name for the conditions of a run: its examples, model, shape and number format."""
    shared = json.dumps(conditions(identity), sort_keys=True)
    return hashlib.sha256(shared.encode()).hexdigest()[:12]


def cohort_columns(run: Run, pools: Pools) -> dict[str, pl.Expr]:
    """The columns that say which cohort a run's rows belong to. Needs a column `trajectory`."""
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
        gates: what the recordings of full decodes are replayed under.
    """
    members: dict[str, list[_Member]] = {}
    for run in runs:
        methods = {run.method, *(gates if run.is_baseline and run.has_cells else ())}
        member = _Member(run, methods, set(run.indices))
        members.setdefault(cohort_key(run.manifest.identity), []).append(member)
    rows = [_row(cohort, found, pools) for cohort, found in members.items()]
    frame = pl.DataFrame(rows, schema=COHORTS)
    own = {run.task_name: [getattr(run.task.shape, name) for name in SHAPE] for run in runs}
    return in_order(frame.with_columns(main=pl.col("cohort").is_in(_main(frame, own))), "cohort")


class _Member(NamedTuple):
    """A folder of a cohort, and the methods it has results of."""

    run: Run
    methods: set[str]
    indices: set[int]


def _row(cohort: str, found: Sequence[_Member], pools: Pools) -> dict[str, Any]:
    run = found[0].run
    indices = set().union(*(member.indices for member in found))
    methods = set().union(*(member.methods for member in found))
    pooled = indices & pools.of(run)
    return {
        "model": run.model,
        "task": run.task_name,
        "family": str(run.task.family),
        "cohort": cohort,
        "source": run.manifest.identity["source"],
        **{name: run.manifest.identity["shape"][name] for name in SHAPE},
        "methods": sum(map(is_plain, methods)),
        "examples": len(indices - pooled),
        "pooled": len(pooled),
        "created": max(str(m.run.manifest.environment.get("created", "")) for m in found),
        "again": _spell_options(_setup(run)),
        "span": _spell_options(_span(indices - pooled or indices) | _batch(run)),
        "timed": _spell_options(_timed(run, indices)),
        "main": False,
    }


def _main(cohorts: pl.DataFrame, own: Mapping[str, Sequence[int]]) -> list[str]:
    """The cohort of each model and task that stands for it.

    The task's own shape before others, then the one that the model has on most tasks of the
    family (its own, if it brings one), then the one with most methods, examples, and the newest.

    Args:
        own: the shape of every task.
    """
    shape = pl.concat_list(SHAPE)
    ranked = cohorts.with_columns(
        own=shape == pl.col("task").replace_strict(own, return_dtype=pl.List(pl.Int32())),
        usual=pl.col("task").n_unique().over("model", "family", *SHAPE),
    )
    order = ["own", "usual", "methods", "examples", "created", "cohort"]
    best = ranked.sort(order, descending=True).group_by("model", "task", maintain_order=True)
    return best.first()["cohort"].to_list()


def _setup(run: Run) -> dict[str, Any]:
    """The options with which `c4 run` decodes in the same cohort."""
    identity, asked = run.manifest.identity, run.manifest.asked
    return {
        "model": asked.get("model", run.model.replace("--", "/")),
        "revision": identity["revision"],
        "task": task_typed(run.manifest),
        "source": asked.get("source", _usual_source(run)),
        "prompt": asked.get("prompt", identity.get("task_definition", {}).get("prompt")),
        "seed": identity["seed"],
        "gen-length": identity["shape"]["length"],
        "steps": identity["shape"]["budget"],
        "block-length": identity["shape"]["block_length"],
        "out": run.folder.parents[2],
    }


def _usual_source(run: Run) -> str | None:
    """The source that decodes the same examples; None where the task brings them along."""
    source = str(run.manifest.identity["source"])
    if source in (EMBEDDED_SOURCE, HUB_SOURCE) or not run.task.is_own:
        return source if run.task.is_own else None
    # A file: an old run tells its name, and not where it is.
    return str(run.manifest.identity["origin"]).partition(":")[2].rpartition("@")[0]


def _batch(run: Run) -> dict[str, int]:
    batch = int(run.manifest.identity["batch"])
    return {"batch": batch} if batch != 1 else {}


def _timed(run: Run, indices: set[int]) -> dict[str, int]:
    """Options of `c4 bench`: as many of the recorded examples as it needs, if there may be fewer.

    Data sets have more than enough. Of a user's own rows, only those recorded are known to exist.
    """
    if run.manifest.identity["source"] in (EMBEDDED_SOURCE, HUB_SOURCE):
        return {}
    warmups = min(2, len(indices) - 1)
    return {"skip": min(indices), "n": min(20, len(indices) - warmups), "warmups": warmups}


def _span(indices: set[int]) -> dict[str, int]:
    return {"skip": min(indices), "n": max(indices) - min(indices) + 1}


def _spell_options(options: Mapping[str, Any]) -> str:
    given = {name: str(value) for name, value in options.items() if value is not None}
    return shlex.join(word for name, value in given.items() for word in (f"--{name}", value))


def cohort_notes(cohorts: pl.DataFrame) -> list[str]:
    """Notes that say which of several cohorts is shown, and which are not."""
    notes = []
    several = cohorts.filter(pl.len().over("model", "task") > 1)
    for (model, task), group in several.group_by("model", "task", maintain_order=True):
        (shown,) = group.filter("main").iter_rows(named=True)
        others = [_describe(row, shown) for row in group.filter(~pl.col("main")).to_dicts()]
        notes.append(
            f"{task} on {model}: {spell_shape(shown)} is shown; not shown: {', '.join(others)}; "
            "every shape is in (c4 report scaling)"
        )
    return notes


def _describe(row: Mapping[str, Any], shown: Mapping[str, Any]) -> str:
    if spell_shape(row) != spell_shape(shown):
        return spell_shape(row)
    differs = "other weights, examples, tokenizer or number format"
    return f"the same shape with {differs} ({row['cohort']})"


def pool_note(cohorts: pl.DataFrame) -> str:
    """A sentence on the calibration pool for a table's caption; empty if there is none."""
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
