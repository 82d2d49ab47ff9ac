"""Forward passes and seconds spent in each block."""

import polars as pl

from c4.analysis.paper_names import in_order

BLOCKS = pl.Schema(
    {
        "model": pl.String(),
        "task": pl.String(),
        "family": pl.String(),
        "method": pl.String(),
        "n": pl.UInt32(),
        "not_gradable": pl.UInt32(),  # number of answers that could not be graded
        "block": pl.Int64(),  # 0…N−1
        "passes": pl.Float64(),  # mean forward passes in the block
        "share": pl.Float64(),  # of the block's budget; above 1 if the method exceeds it
        "steps": pl.Float64(),  # mean over all blocks together
        "budget": pl.Int32(),
        "accuracy": pl.Float64(),
        "drop": pl.Float64(),  # points lost to the baseline on shared examples; null if unknown
        "past": pl.Boolean(),  # whether the drop exceeds the tolerance
    }
)
TIME_SHARES = pl.Schema(
    {
        "model": pl.String(),
        "task": pl.String(),
        "family": pl.String(),
        "method": pl.String(),
        "n": pl.UInt32(),
        "block": pl.Int64(),
        "seconds": pl.Float64(),  # mean seconds measured in the block
        "share": pl.Float64(),  # of the whole decode
        "tps": pl.Float64(),  # from `c4 bench`; null if not timed
    }
)


def block_usage(outcomes: pl.DataFrame, totals: pl.DataFrame) -> pl.DataFrame:
    """Compute the forward passes that each method spends in each block. See `BLOCKS`."""
    spent = outcomes.select(
        "cohort",
        "method",
        "block_steps",
        per_block=pl.col("budget") * pl.col("block_length") / pl.col("length"),
    )
    spent = (
        _explode(spent, "block_steps")
        .group_by("cohort", "method", "block")
        .agg(
            passes=pl.col("block_steps").mean(),
            share=(pl.col("block_steps") / pl.col("per_block")).mean(),
        )
    )
    joined = totals.join(spent, on=["cohort", "method"])
    return in_order(joined.select(pl.col(n).cast(k) for n, k in BLOCKS.items()), "block")


def time_shares(outcomes: pl.DataFrame, bench: pl.DataFrame) -> pl.DataFrame:
    """Compute the measured seconds that each method spends in each block. See `TIME_SHARES`.

    Args:
        bench: timings with their cohorts.
    """
    timed = outcomes.filter(pl.col("block_seconds").is_not_null())
    keys = ["model", "task", "family", "cohort", "method"]
    counts = timed.group_by(keys).agg(n=pl.len())
    blocks = _explode(timed.select(*keys, "block_seconds"), "block_seconds")
    means = blocks.group_by(*keys, "block").agg(seconds=pl.col("block_seconds").mean())
    whole = pl.col("seconds").sum().over(keys)
    frame = means.with_columns(share=pl.col("seconds") / whole).join(counts, on=keys)
    speeds = bench.select("cohort", "method", "tps")
    frame = frame.join(speeds, on=["cohort", "method"], how="left")
    return in_order(frame.select(pl.col(n).cast(k) for n, k in TIME_SHARES.items()), "block")


def _explode(frame: pl.DataFrame, column: str) -> pl.DataFrame:
    """Expand a list column into one row per block, numbered from 0."""
    numbered = frame.with_columns(block=pl.int_ranges(pl.col(column).list.len()))
    return numbered.explode(column, "block")
