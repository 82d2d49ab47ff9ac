"""Where gates stop against where answers settle."""

import polars as pl

from c4.analysis.library import Library
from c4.analysis.names import in_order
from c4.analysis.phases import phase_summary
from c4.analysis.tables.captions import with_pool
from c4.analysis.tables.columns import NAMES, labelled
from c4.analysis.tables.render import Column, ReportTable
from c4.analysis.tables.stabilization import recordings_missing


def make_table(library: Library, _: bool) -> ReportTable:
    """A row for every gate and task; the paper has no such table."""
    phases = phase_summary(library.phases).rename({"gate": "method"})
    phases = in_order(phases).with_columns(pl.col("fired", "premature") * 100)
    columns = [
        *NAMES,
        Column("n", "n"),
        Column("fired", "stopped %", 1),
        Column("exit", "mean exit", 2),
        Column("stabilization", "mean s_j", 2),
        Column("never", "never settle"),
        Column("premature", "premature %", 1),
        Column("early_by", "early by", 2),
    ]
    caption = (
        "Where gates stop against where answers settle, in progress; premature exits are a share "
        "of the answers that settle"
    )
    caption = with_pool(caption, library)
    missing = recordings_missing(library)
    return ReportTable("phases", caption, columns, labelled(phases), missing)
