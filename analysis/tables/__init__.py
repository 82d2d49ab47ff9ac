"""The paper's tables, one module each, made from what a library holds."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from c4.analysis.library import Library
from c4.analysis.tables import (
    ablation,
    calibration,
    main,
    paired,
    phases,
    scaling,
    stabilization,
    wino_cvee,
)
from c4.analysis.tables.commands import reading_words
from c4.analysis.tables.render import ReportTable, without_dashes, without_unpublished
from c4.errors import unknown_name

TableMaker = Callable[[Library, bool], ReportTable]
"""A function that makes a table; the flag adds published numbers where they compare."""

REPORT_GATES = ("confidence", "stability", "prophet", "sched", "cvee")
"""Gates that a report replays if no run of them is on disk."""
REPORTS: dict[str, list[TableMaker]] = {
    "main": [main.make_table],
    "ablation": [ablation.make_table],
    "paired": [paired.make_table],
    "stabilization": [stabilization.make_table, phases.make_table],
    "scaling": [scaling.make_table, wino_cvee.make_table],
    "calibration": [calibration.make_table],
}
"""The tables of every report, by its name."""


def make_report(
    names: Sequence[str], library: Library, *, paper: bool, everything: bool = True
) -> list[ReportTable]:
    """The tables of some reports, by name; `all` is every one. Empty tables say what is missing.

    Args:
        paper: put the published numbers beside one's own, where these are of the same thing.
        everything: whether methods that were not run have a row of dashes.
    """
    for name in names:
        if name not in REPORTS and name != "all":
            raise unknown_name("report", name, [*REPORTS, "all"])
    wanted = [
        maker for name in REPORTS if name in names or "all" in names for maker in REPORTS[name]
    ]
    tables = [without_unpublished(make(library, paper)) for make in wanted]
    if not everything:
        tables = [without_dashes(table) for table in tables]
    read_as = ", ".join(reading_words(library.reading))
    if not read_as:
        return tables
    return [
        replace(table, caption=f"{table.caption} (answers read under {read_as})")
        for table in tables
    ]
