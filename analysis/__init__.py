"""Analysis: runs as data frames and numbers. Nothing is drawn or decoded here.

A `Library` holds the runs below a folder and computes its frames on demand. The functions here take
runs or frames and return frames. The schema of each frame is declared in the module of the function
that makes it; `PHASES` in `c4.analysis.phases` is an example.
"""

from c4.analysis.evaluation import evaluate_run
from c4.analysis.library import Library
from c4.analysis.outcomes import method_totals
from c4.analysis.paired import paired_table
from c4.analysis.phases import phase_summary, phase_table
from c4.analysis.render import TableFormat, render_tables
from c4.analysis.stabilization import settled_by, stabilization_summary, stabilization_table
from c4.analysis.statistics import mcnemar
from c4.analysis.tables import make_report
from c4.analysis.traces import text_table, trace_table
from c4.replay.calibration import TOLERANCE

__all__ = [
    "TOLERANCE",
    "Library",
    "TableFormat",
    "evaluate_run",
    "make_report",
    "mcnemar",
    "method_totals",
    "paired_table",
    "phase_summary",
    "phase_table",
    "render_tables",
    "settled_by",
    "stabilization_summary",
    "stabilization_table",
    "text_table",
    "trace_table",
]
