"""What every method did with every example: one frame for recordings, replays and live decodes."""

import json
from collections.abc import Mapping

import polars as pl

from c4.analysis._cohorts import cohort_columns
from c4.analysis._names import in_order
from c4.analysis._paired import past_tolerance
from c4.record import LiveRun, Origin, Run
from c4.replay import SET_ASIDE, Gate, Pools, ReplayGrader, replay
from c4.tasks import Shape

OUTCOMES = pl.Schema(
    {
        "model": pl.String(),
        "task": pl.String(),
        "family": pl.String(),
        "cohort": pl.String(),  # equal where examples, weights and shape are: only those pair
        "method": pl.String(),
        "how": pl.String(),  # recorded, replayed or live
        "trajectory": pl.Int32(),
        "pool": pl.Boolean(),  # calibration may have seen the example
        "length": pl.Int32(),
        "budget": pl.Int32(),
        "block": pl.Int32(),
        "steps": pl.Int32(),  # forward passes spent
        "fired": pl.Boolean(),  # an exit gate ended it
        "answer": pl.String(),
        "correct": pl.Boolean(),
        "block_passes": pl.List(pl.Int32()),  # null where a gate was replayed over a sampler
        "block_seconds": pl.List(pl.Float64()),  # null unless it was measured
        "confirmed": pl.Float64(),  # share of tokens that CCTC confirmed; null likewise
        "settings": pl.String(),  # JSON of the rule's and the gate's parameters
    }
)
"""One row per example and method."""
GRADED = {name: OUTCOMES[name] for name in ("answer", "correct")}


def recorded_outcomes(
    run: Run, pools: Pools = SET_ASIDE, *, unsafe_code: bool = False
) -> pl.DataFrame:
    """The full decodes of a recording: the baseline."""
    grader = ReplayGrader(run, unsafe_code)
    rows = []
    for row in run.rows():
        answer, correct = grader.own(row)
        spent = {"trajectory": row.trajectory, "steps": row.forward_passes, "fired": False}
        rows.append(spent | {"answer": answer, "correct": correct})
    frame = pl.DataFrame(rows, schema_overrides=GRADED)
    return _outcomes(run, pools, frame, method=pl.lit("baseline"), how="recorded")


def replayed_outcomes(
    run: Run, gates: Mapping[str, Gate], pools: Pools = SET_ASIDE, *, unsafe_code: bool = False
) -> pl.DataFrame:
    """What the gates make of a recording. Texts are dropped part by part."""
    wanted = ("gate", "trajectory", "steps", "fired", "answer", "correct")
    parts = [frame.select(wanted) for frame in replay(run, gates, unsafe_code=unsafe_code)]
    return _outcomes(run, pools, pl.concat(parts), method=pl.col("gate"), how="replayed")


def _outcomes(
    run: Run, pools: Pools, frame: pl.DataFrame, *, method: pl.Expr, how: str
) -> pl.DataFrame:
    shape = run.shape
    frame = frame.with_columns(
        **cohort_columns(run, pools),
        method=method,
        how=pl.lit(how),
        length=pl.lit(shape.length),
        budget=pl.lit(shape.steps),
        block=pl.lit(shape.block),
        # A sampler's steps are not spread over the blocks as the schedule's are.
        block_passes=scheduled_passes(shape) if run.method == "baseline" else pl.lit(None),
        block_seconds=pl.lit(None),
        confirmed=pl.lit(None),
        settings=pl.lit("{}"),
    )
    return frame.select(pl.col(name).cast(kind) for name, kind in OUTCOMES.items())


def live_outcomes(
    live: LiveRun, pools: Pools = SET_ASIDE, *, unsafe_code: bool = False
) -> pl.DataFrame:
    """What a method did live."""
    identity = live.manifest.identity
    wanted = [
        "trajectory",
        "forward_passes",
        "exit_step",
        "block_passes",
        "block_seconds",
        "committed_by",
    ]
    frame = pl.DataFrame(live.table().select(wanted))
    grader = ReplayGrader(live, unsafe_code)
    grades = [grader.own(row) for row in live.rows()]
    frame = frame.hstack(pl.DataFrame(grades, schema=GRADED, orient="row"))
    settings = {key: identity.get(key) for key in ("rule", "gate")}
    shape = live.shape
    frame = frame.with_columns(
        **cohort_columns(live, pools),
        method=pl.lit("baseline" if live.is_baseline else live.method),
        how=pl.lit("live"),
        length=pl.lit(shape.length),
        budget=pl.lit(shape.steps),
        block=pl.lit(shape.block),
        steps=pl.col("forward_passes"),
        fired=pl.col("exit_step").is_not_null(),
        confirmed=pl.col("committed_by")
        .list.eval(pl.element() == int(Origin.CONFIRMED))
        .list.mean(),
        settings=pl.lit(json.dumps(settings)),
    )
    return frame.select(pl.col(name).cast(kind) for name, kind in OUTCOMES.items())


def scheduled_passes(shape: Shape) -> pl.Expr:
    """Passes in every block when the schedule runs to a step and stops there."""
    spent = [
        (pl.col("steps") - n * shape.steps_per_block).clip(0, shape.steps_per_block)
        for n in range(shape.blocks)
    ]
    return pl.concat_list(spent)


def best_source(outcomes: pl.DataFrame) -> pl.DataFrame:
    """One source for every method: the one with most examples, live before replayed.

    Replay and live decoding agree to the token, so either may stand for the method; mixing them
    would only blur where numbers come from.
    """
    rank = pl.col("how").replace_strict({"live": 2, "replayed": 1, "recorded": 0})
    counts = outcomes.group_by("cohort", "method", "how").agg(n=pl.len())
    best = (
        counts.with_columns(rank=rank)
        .sort("n", "rank", descending=True)
        .group_by("cohort", "method", maintain_order=True)
        .first()
        .select("cohort", "method", "how")
    )
    return in_order(outcomes.join(best, on=["cohort", "method", "how"]), "cohort", "trajectory")


def method_totals(outcomes: pl.DataFrame) -> pl.DataFrame:
    """Accuracy, steps, saving and exits, per cohort and method; past: it lost too much.

    The baseline's accuracy is taken over the same examples; null where none were decoded so.
    """
    baseline = outcomes.filter(pl.col("method") == "baseline").select(
        "cohort", "trajectory", base_correct="correct"
    )
    joined = outcomes.join(baseline, on=["cohort", "trajectory"], how="left")
    keys = ["model", "task", "family", "cohort", "length", "budget", "block", "method", "how"]
    keys.append("pool")  # all of a cohort's rows, or none
    paired = pl.col("base_correct").is_not_null() & pl.col("correct").is_not_null()
    totals = joined.group_by(keys, maintain_order=True).agg(
        n=pl.len(),
        accuracy=pl.col("correct").mean(),
        steps=pl.col("steps").mean(),
        saving=1 - (pl.col("steps") / pl.col("budget")).mean(),
        fired=pl.col("fired").mean(),
        paired=paired.sum(),
        drop=(pl.col("base_correct").cast(pl.Float64) - pl.col("correct").cast(pl.Float64))
        .filter(paired)
        .mean(),
        settings=pl.col("settings").first(),
    )
    past = past_tolerance(100 * pl.col("drop")).fill_null(False)
    return in_order(totals.with_columns(past=past), "length", "block")
