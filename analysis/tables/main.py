"""The main table: every method's accuracy, steps and speed on every task."""

from c4.analysis.library import Library
from c4.analysis.names import METHOD_LADDER, is_of
from c4.analysis.tables.methods import methods_table
from c4.analysis.tables.render import ReportTable

METHODS = ("baseline", "prophet", "sched", "slowfast", "klass", "wino", "c4")
"""Methods that always have a row in the table."""


def make_table(library: Library, paper: bool) -> ReportTable:
    """Every method that was run except those of the ablation, which have their own table."""
    rungs = set(METHOD_LADDER) - set(METHODS) - {"cvee"}
    totals = library.main_totals
    return methods_table(
        "main",
        "Accuracy, steps and speed of every method",
        totals.filter(~is_of(totals["method"], rungs)),
        METHODS,
        library,
        paper,
    )
