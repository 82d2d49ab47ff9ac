"""When answers settle: s_p of every task."""

from c4.analysis.cohorts import cohort_notes
from c4.analysis.library import Library
from c4.analysis.stabilization import stabilization_summary
from c4.analysis.tables.captions import with_paper, with_pool
from c4.analysis.tables.columns import NAMES, labelled
from c4.analysis.tables.commands import RECORD
from c4.analysis.tables.render import Column, ReportTable


def make_table(library: Library, paper: bool) -> ReportTable:
    """Two rows per task: when half and when nine tenths of its answers have settled."""
    rows = stabilization_summary(library.settling)
    columns = [
        *NAMES[:2],
        Column("n", "n"),
        Column("share", "p", 1),
        Column("s_p", "s_p", 2, subject=True),
        Column("low", "95% low", 2),
        Column("high", "95% high", 2),
        Column("appeared", "first shown", 2),
        Column("never", "never settle"),
    ]
    caption = with_pool(
        "Progress by which a share p of the answers has settled for good, and by which it "
        "first appeared",
        library,
    )
    if paper:
        rows, caption = with_paper(rows, caption, "stabilization", ["task", "share"], library)
        columns.append(Column("paper_s_p", "paper: s_p", 2))
    missing = recordings_missing(library)
    return ReportTable("stabilization", caption, columns, labelled(rows), missing)


def recordings_missing(library: Library) -> list[str]:
    """Notes on cohorts that are not shown or, if nothing is recorded, on what to record."""
    notes = cohort_notes(library.cohorts)
    return notes if library.settling.height else [*notes, f"recordings {RECORD}"]
