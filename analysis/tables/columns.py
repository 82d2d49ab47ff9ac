"""Columns that several tables share, and the frame columns they come from."""

from collections.abc import Sequence

import polars as pl

from c4.analysis.names import method_label, task_label
from c4.analysis.tables.render import Column

NAMES = [Column("model", "model"), Column("label", "task"), Column("method_label", "method")]
NUMBERS = [
    Column("accuracy", "accuracy %", 1),
    Column("steps", "steps", 1),
    Column("saving", "saving %", 1),
    Column("tps", "TPS", 1),
    Column("speedup", "speedup ×", 2),
]
NOT_GRADABLE = Column("not_gradable", "not gradable")
"""Answers that the machine failed to grade; no accuracy counts them."""
TIMED = [Column("timed", "timed, n×passes"), Column("cv", "CV %", 1)]
"""Columns that say how speeds were measured."""


def paper_columns(columns: Sequence[Column]) -> list[Column]:
    """The columns of the published numbers that belong to these columns."""
    return [Column(f"paper_{c.key}", f"paper: {c.heading}", c.decimals) for c in columns]


def counts(rows: pl.DataFrame) -> list[Column]:
    """Columns for the number of examples, and of those that are not gradable if there are any."""
    failed = rows["not_gradable"].sum() if rows.height else 0
    return [Column("n", "n"), *([NOT_GRADABLE] if failed else [])]


def percent(rows: pl.DataFrame) -> pl.DataFrame:
    """Convert accuracy and saving to percent."""
    return rows.with_columns(pl.col("accuracy", "saving") * 100)


def with_speed(rows: pl.DataFrame, bench: pl.DataFrame) -> pl.DataFrame:
    """Add the timing of each method to its rows, if there is one."""
    speeds = bench.select("cohort", "method", "tps", "timed", "cv", "speedup")
    return rows.join(speeds, on=["cohort", "method"], how="left", maintain_order="left")


def labelled(rows: pl.DataFrame) -> pl.DataFrame:
    """Replace the names of tasks and methods by those that the paper uses."""
    labels = [pl.col("task").map_elements(task_label, return_dtype=pl.String).alias("label")]
    if "method" in rows.columns:
        named = pl.col("method").map_elements(method_label, return_dtype=pl.String)
        labels.append(named.alias("method_label"))
    return rows.with_columns(labels)
