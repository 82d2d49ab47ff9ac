"""CVEE on top of WINO's sampler."""

import polars as pl

from c4.analysis.library import Library
from c4.analysis.sweeps import WINO_GRID, wino_table
from c4.analysis.tables.captions import with_paper, with_pool
from c4.analysis.tables.columns import NAMES, labelled, paper_columns
from c4.analysis.tables.missing import not_gradable_notes
from c4.analysis.tables.render import Column, ReportTable


def make_table(library: Library, paper: bool) -> ReportTable:
    """WINO alone, with CVEE as deployed, and with CVEE in the best setting within tolerance."""
    rows = wino_table(library.wino_totals)
    names = {"wino": "WINO", "deployed": "+ CVEE", "best": "+ CVEE, best that holds"}
    keys = [f"{kind}_{what}" for kind in names for what in ("accuracy", "steps")]
    rows = rows.with_columns(pl.col([key for key in keys if key.endswith("accuracy")]) * 100)
    numbers = []
    for key in keys:
        kind, _, what = key.partition("_")
        unit = " %" if what == "accuracy" else ""
        numbers.append(Column(key, f"{names[kind]}: {what}{unit}", 1))
    columns = [*NAMES[:2], *numbers, Column("settings", "settings tried")]
    caption = (
        f"CVEE on WINO's sampler; its {len(WINO_GRID)} settings are replayed where WINO's steps "
        "are recorded"
    )
    caption = with_pool(caption, library)
    if paper:
        rows, caption = with_paper(rows, caption, "wino_cvee", ["task"], library)
        columns += paper_columns(numbers)
    missing = [*_missing_sweeps(rows, library), *not_gradable_notes(library)]
    return ReportTable("wino-cvee", caption, columns, labelled(rows), missing)


def _missing_sweeps(rows: pl.DataFrame, library: Library) -> list[str]:
    """Notes on what to record to try CVEE on WINO; a run without its cells must be run again."""
    ran = library.main_totals.filter(pl.col("method") == "wino")
    if ran.is_empty():
        return ["WINO with its steps (c4 run --task gsm8k --method wino --cells)"]
    unswept = ran.join(rows.filter(pl.col("settings") > 1), on="cohort", how="anti")
    cohorts = library.cohorts.join(unswept, on="cohort", how="semi")
    return [
        f"{row['task']} on {row['model']}: settings of CVEE on WINO (c4 run --method wino --cells "
        f"--fresh {row['again']} {row['span']})"
        for row in cohorts.iter_rows(named=True)
    ]
