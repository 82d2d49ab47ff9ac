"""Outcome of each method on each example: one frame for recordings, replays and live decodes."""

import json
from collections.abc import Mapping
from dataclasses import asdict

import polars as pl

from c4.analysis.cohorts import PLACE, cohort_columns
from c4.analysis.paired import MOST_LOST
from c4.analysis.paper_names import in_order
from c4.gates.gate import Gate
from c4.replay.decisions import replay
from c4.replay.grader import ReplayGrader
from c4.replay.pools import SET_ASIDE, Pools
from c4.store.labels import BASELINE
from c4.store.origins import Origin
from c4.store.runs import Run
from c4.tasks import Shape

OUTCOMES = pl.Schema(
    {
        **PLACE,
        "method": pl.String(),
        "how": pl.String(),  # decoded or replayed
        "trajectory": pl.Int32(),
        "pool": pl.Boolean(),  # whether calibration may have seen the example
        "length": pl.Int32(),
        "budget": pl.Int32(),
        "block_length": pl.Int32(),
        "steps": pl.Int32(),  # number of forward passes
        "fired": pl.Boolean(),  # whether an exit gate ended the decode
        "answer": pl.String(),
        "correct": pl.Boolean(),  # null if not graded or not gradable
        "not_gradable": pl.Boolean(),  # whether grading failed
        "block_steps": pl.List(pl.Int32()),  # null for gates replayed over a sampler
        "block_seconds": pl.List(pl.Float64()),  # null unless measured
        "confirmed": pl.Float64(),  # share of tokens confirmed by CCTC; null for replays
        "settings": pl.String(),  # JSON: parameters of the rule and the gate
    }
)
"""One row per example and method."""


OF_ROWS = (
    *("trajectory", "steps", "fired", "answer", "correct", "not_gradable"),
    *("block_steps", "block_seconds", "confirmed"),
)
"""Columns of `OUTCOMES` that differ between the rows of a run."""
DECODED, REPLAYED = "decoded", "replayed"
"""How an outcome was obtained."""


def decoded_outcomes(
    run: Run, pools: Pools = SET_ASIDE, *, unsafe_code: bool = False
) -> pl.DataFrame:
    """Outcomes of a decoded run, from its rows. See `OUTCOMES`."""
    grader = ReplayGrader(run, unsafe_code)
    parts = []
    for part in run.parts:
        rows = [(row, grader.own(row)) for row in run.read_rows(part)]
        outcomes = [
            {
                "trajectory": row.trajectory,
                "steps": row.steps,
                "fired": row.exit_step is not None,
                "answer": grade and grade.answer,
                "correct": grade and grade.correct,
                "not_gradable": grade is not None and grade.correct is None,
                "block_steps": row.block_steps,
                "block_seconds": row.block_seconds,
                "confirmed": list(row.committed_by).count(Origin.CONFIRMED) / row.length,
            }
            for row, grade in rows
        ]
        parts.append(pl.DataFrame(outcomes, schema={name: OUTCOMES[name] for name in OF_ROWS}))
    settings = {key: run.manifest.identity[key] for key in ("rule", "gate")}
    return _outcomes(
        run,
        pools,
        pl.concat(parts),
        method=pl.lit(BASELINE if run.is_baseline else run.method),
        how=pl.lit(DECODED),
        settings=pl.lit(json.dumps(settings)),
    )


def replayed_outcomes(
    run: Run, gates: Mapping[str, Gate], pools: Pools = SET_ASIDE, *, unsafe_code: bool = False
) -> pl.DataFrame:
    """Outcomes of gates replayed over a recording. Drops texts part by part to save memory."""
    wanted = ("gate", "trajectory", "steps", "fired", "answer", "correct")
    parts = [frame.select(wanted) for frame in replay(run, gates, unsafe_code=unsafe_code)]
    return _outcomes(
        run,
        pools,
        pl.concat(parts),
        method=pl.col("gate"),
        how=pl.lit(REPLAYED),
        not_gradable=pl.col("correct").is_null(),  # replay grades every answer
        # Only the schedule spends the same number of steps in each block; a sampler does not.
        block_steps=scheduled_steps(run.shape) if run.is_baseline else pl.lit(None),
        block_seconds=pl.lit(None),
        confirmed=pl.lit(None),
        settings=pl.lit("{}"),
    )


def _outcomes(run: Run, pools: Pools, frame: pl.DataFrame, **columns: pl.Expr) -> pl.DataFrame:
    """Add the columns that all rows of a run share, and cast to `OUTCOMES`."""
    shape = {name: pl.lit(value) for name, value in asdict(run.shape).items()}
    frame = frame.with_columns(**cohort_columns(run, pools), **shape, **columns)
    return frame.select(pl.col(name).cast(kind) for name, kind in OUTCOMES.items())


def scheduled_steps(shape: Shape) -> pl.Expr:
    """Forward passes in each block if the schedule stops after `steps` steps."""
    spent = [
        (pl.col("steps") - n * shape.steps_per_block).clip(0, shape.steps_per_block)
        for n in range(shape.blocks)
    ]
    return pl.concat_list(spent)


def best_source(outcomes: pl.DataFrame) -> pl.DataFrame:
    """Keep one source per method: the one with the most examples; in a tie, the decoded one.

    Replay and live decoding agree token for token, so either may represent the method; mixing them
    would only blur where numbers come from. The order of the rows is kept.
    """
    rank = pl.col("how").replace_strict({DECODED: 1, REPLAYED: 0})
    counts = outcomes.group_by("cohort", "method", "how").agg(n=pl.len())
    ranked = counts.with_columns(rank=rank).sort("n", "rank", descending=True)
    best = ranked.unique(("cohort", "method"), keep="first", maintain_order=True)
    return outcomes.join(best, on=["cohort", "method", "how"], how="semi", maintain_order="left")


def method_totals(outcomes: pl.DataFrame) -> pl.DataFrame:
    """Accuracy, steps, saving and exits, per cohort and method.

    `accuracy` is over graded answers; `not_gradable` counts answers that could not be graded.
    `drop` is the accuracy lost to the baseline, in points, on the examples that both have graded;
    null if there are none. `past` says whether it exceeds the tolerance.
    """
    baseline = outcomes.filter(method=BASELINE)
    baseline = baseline.select("cohort", "trajectory", base_correct="correct")
    joined = outcomes.join(baseline, on=["cohort", "trajectory"], how="left")
    keys = [*PLACE, "length", "budget", "block_length", "method", "how"]
    keys.append("pool")  # the same for all rows of a cohort
    paired = pl.col("base_correct").is_not_null() & pl.col("correct").is_not_null()
    totals = joined.group_by(keys, maintain_order=True).agg(
        n=pl.len(),
        not_gradable=pl.col("not_gradable").sum(),
        accuracy=pl.col("correct").mean(),
        steps=pl.col("steps").mean(),
        saving=1 - (pl.col("steps") / pl.col("budget")).mean(),
        fired=pl.col("fired").mean(),
        paired=paired.sum(),
        drop=100
        * (pl.col("base_correct").cast(pl.Float64) - pl.col("correct").cast(pl.Float64))
        .filter(paired)
        .mean(),
        settings=pl.col("settings").first(),
    )
    past = (pl.col("drop") > MOST_LOST).fill_null(False)
    return in_order(totals.with_columns(past=past), "length", "block_length")
