"""Paired statistics: each method against full decoding on the same examples."""

import polars as pl

from c4.analysis.cohorts import cohort_notes
from c4.analysis.library import Library
from c4.analysis.paired import paired_table
from c4.analysis.tables.captions import with_paper, with_pool
from c4.analysis.tables.columns import NAMES, counts, labelled
from c4.analysis.tables.commands import RECORD
from c4.analysis.tables.missing import not_gradable_notes, sweep_notes
from c4.analysis.tables.render import Column, ReportTable


def make_table(library: Library, paper: bool) -> ReportTable:
    """Every method beside the baseline of its cohort."""
    rows = paired_table(library.main_outcomes).with_columns(pl.col("identical") * 100)
    columns = [
        *NAMES,
        *counts(rows),
        Column("b", "b"),
        Column("c", "c"),
        Column("p", "p", 3, never_zero=True),
        Column("difference", "Δ accuracy, points", 1, signed=True, points=True),
        Column("low", "95% low", 1, signed=True, points=True),
        Column("high", "95% high", 1, signed=True, points=True),
        Column("identical", "identical %", 1),
    ]
    caption = (
        "Each method against full decoding, example by example: b only the baseline is right, c "
        "only the method; McNemar's exact test; paired bootstrap interval"
    )
    caption = with_pool(caption, library)
    if paper:
        rows, caption = with_paper(rows, caption, "paired", ["task", "method"], library)
        columns += [
            Column("paper_b", "paper: b", 0),
            Column("paper_c", "paper: c", 0),
            Column("paper_p", "paper: p", 3, never_zero=True),
            Column("paper_difference", "paper: Δ, points", 1, signed=True, points=True),
            Column("paper_identical", "paper: identical %", 1),
        ]
    missing = [*cohort_notes(library.cohorts), *sweep_notes(library)]
    missing += not_gradable_notes(library)
    missing += [] if rows.height else [f"a method beside the baseline {RECORD}"]
    return ReportTable("paired", caption, columns, labelled(rows), missing, "difference")
