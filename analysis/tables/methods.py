"""What the main table and the ablation ladder share: a row for every method of every task."""

from collections.abc import Sequence

import polars as pl

from c4.analysis.library import Library
from c4.analysis.names import in_order
from c4.analysis.tables.captions import with_paper, with_pool
from c4.analysis.tables.columns import (
    NAMES,
    NUMBERS,
    TIMED,
    counts,
    labelled,
    paper_columns,
    percent,
    with_speed,
)
from c4.analysis.tables.missing import missing_methods
from c4.analysis.tables.render import Column, ReportTable


def methods_table(
    name: str,
    caption: str,
    totals: pl.DataFrame,
    expected: Sequence[str],
    library: Library,
    paper: bool,
) -> ReportTable:
    """A table of method totals.

    Args:
        expected: methods that get a row of dashes where nothing ran.
    """
    rows = with_speed(_with_expected(percent(totals), expected), library.bench)
    columns = [*NAMES, *counts(rows), *NUMBERS, *TIMED, Column("how", "how")]
    caption = with_pool(caption, library)
    if paper:
        rows, caption = with_paper(rows, caption, name, ["task", "method"], library)
        columns += paper_columns(NUMBERS)
    missing = missing_methods(rows, library)
    return ReportTable(name, caption, columns, labelled(rows), missing, "accuracy")


def _with_expected(rows: pl.DataFrame, methods: Sequence[str]) -> pl.DataFrame:
    """Add an empty row for every expected method that was not run."""
    keys = ["model", "task", "family", "cohort", "pool"]
    expected = rows.select(keys).unique(maintain_order=True)
    expected = expected.join(pl.DataFrame({"method": methods}), how="cross")
    rows = expected.join(rows, on=[*keys, "method"], how="full", coalesce=True)
    return in_order(rows.with_columns(pl.col("past").fill_null(False)))
