"""The ablation ladder: from the baseline to C⁴, one part at a time."""

from c4.analysis.library import Library
from c4.analysis.names import METHOD_LADDER, is_of
from c4.analysis.tables.methods import methods_table
from c4.analysis.tables.render import ReportTable


def make_table(library: Library, paper: bool) -> ReportTable:
    """The rungs of the ladder and their variants."""
    totals = library.main_totals
    return methods_table(
        "ablation",
        "Ablation: each method adds one thing to the one before",
        totals.filter(is_of(totals["method"], METHOD_LADDER)),
        METHOD_LADDER,
        library,
        paper,
    )
