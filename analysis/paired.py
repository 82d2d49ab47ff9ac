"""Paired statistics: each method against full decoding on the same examples."""

import numpy as np
import polars as pl

from c4.analysis.cohorts import PLACE
from c4.analysis.paper_names import in_order
from c4.analysis.statistics import bootstrap_interval, mcnemar
from c4.replay.calibration import TOLERANCE

MOST_LOST = TOLERANCE + 1e-9
"""Largest tolerated loss to the baseline, in points, plus a margin for rounding."""

PAIRED = pl.Schema(
    {
        **PLACE,
        "method": pl.String(),
        "how": pl.String(),
        "n": pl.Int64(),  # examples on which both are graded
        "not_gradable": pl.Int64(),  # pairs left out because one of the two could not be graded
        "b": pl.Int64(),  # pairs in which only the baseline is right
        "c": pl.Int64(),  # pairs in which only the method is right
        "p": pl.Float64(),  # of McNemar's exact test
        "difference": pl.Float64(),  # method minus baseline, in points
        "low": pl.Float64(),
        "high": pl.Float64(),  # `low` and `high`: 95% paired bootstrap interval
        "identical": pl.Float64(),  # share of answers equal to the baseline's
        "past": pl.Boolean(),  # whether the loss exceeds `MOST_LOST`
        "pool": pl.Boolean(),  # whether calibration may have seen the examples
    }
)


def paired_table(outcomes: pl.DataFrame) -> pl.DataFrame:
    """Compare every method with the baseline of its cohort. See `PAIRED`."""
    is_baseline = pl.col("method") == "baseline"
    full = {"full": "correct", "full_answer": "answer", "full_not_gradable": "not_gradable"}
    baseline = outcomes.filter(is_baseline).select("cohort", "trajectory", **full)
    pairs = outcomes.filter(~is_baseline).join(baseline, on=["cohort", "trajectory"])
    rows = []
    keys = ["model", "task", "family", "cohort", "method", "how", "pool"]
    for key, every in pairs.group_by(keys, maintain_order=True):
        group = every.filter(pl.col("correct").is_not_null() & pl.col("full").is_not_null())
        if group.is_empty():
            continue
        failed = every.select(pl.col("not_gradable") | pl.col("full_not_gradable")).to_series()
        right, given = group["full"].to_numpy(), group["correct"].to_numpy()
        points = 100.0 * (given.astype(np.float64) - right)
        low, high = bootstrap_interval(points, lambda resampled: resampled.mean(axis=1))
        b, c = int((right & ~given).sum()), int((~right & given).sum())
        rows.append(
            dict(zip(keys, key, strict=True))
            | {
                "n": group.height,
                "not_gradable": failed.sum(),
                "b": b,
                "c": c,
                "p": mcnemar(b, c),
                "difference": float(points.mean()),
                "low": low,
                "high": high,
                "identical": group["answer"].eq_missing(group["full_answer"]).mean(),
                "past": -float(points.mean()) > MOST_LOST,
            }
        )
    return in_order(pl.DataFrame(rows, schema=PAIRED))
