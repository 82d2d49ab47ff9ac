"""What calibrations cost."""

import polars as pl

from c4.analysis._published import beside
from c4.analysis.library import Library
from c4.analysis.tables.captions import with_reasons
from c4.analysis.tables.render import Column, ReportTable


def make_table(library: Library, paper: bool) -> ReportTable:
    """A row for every calibration file."""
    rows = library.calibrations
    columns = [
        Column("model", "model"),
        Column("gate", "gate"),
        Column("pool", "pool"),
        Column("trajectories", "n"),
        Column("forward_passes", "forward passes"),
        Column("decode_seconds", "decoding s", 1),
        Column("settings", "settings tried"),
        Column("search_seconds", "search s", 2),
        Column("chosen", "chosen"),
        Column("worst_drop", "worst drop, points", 1, points=True),
    ]
    caption = "What calibrations cost: the pool is decoded once, and then every setting is replayed"
    if paper:
        named = rows.with_columns(method=pl.col("gate").replace({"cvee": "c4"}))
        rows = beside(named, "calibration", ["method"])
        reasons = rows.select("model", "pool", "unlike_paper").iter_rows()
        caption = with_reasons(caption, reasons)
        columns.append(Column("paper_seconds", "paper: s", 0))
    missing = [] if rows.height else ["a calibration (c4 calibrate --gamma 2)"]
    return ReportTable("calibration", caption, columns, rows, missing)
