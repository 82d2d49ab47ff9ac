"""Analysis: what recordings say, as frames and numbers. Draws nothing, and decodes nothing."""

from c4.analysis._blocks import BLOCKS, TIME_SHARES, block_usage, time_shares
from c4.analysis._calibrations import CALIBRATIONS, calibration_table, find_calibrations
from c4.analysis._cohorts import COHORTS, cohort_table, held_out, pool_note
from c4.analysis._evaluation import TaskEvaluation, evaluate_run
from c4.analysis._exits import (
    GATE_SIGNALS,
    PHASES,
    gate_signals,
    phase_summary,
    phase_table,
)
from c4.analysis._library import COMPARED_GATES, Library
from c4.analysis._names import (
    FAMILY_LABELS,
    METHOD_LABELS,
    family_of,
    in_order,
    method_label,
    model_label,
    task_label,
)
from c4.analysis._outcomes import OUTCOMES, best_source, method_totals
from c4.analysis._paired import PAIRED, mcnemar, paired_table, past_tolerance
from c4.analysis._published import published
from c4.analysis._render import Column, ReportTable, TableFormat, render_tables, show_cell
from c4.analysis._report import REPLAYED, REPORTS, make_report
from c4.analysis._stabilization import (
    SETTLING,
    settled_by,
    settled_interval,
    stabilization,
    stabilization_summary,
)
from c4.analysis._sweeps import H_SWEEP, h_sweep, scaling_table, wino_table
from c4.analysis._traces import TEXTS, TRACE, telling_trajectory, text_table, trace_table
from c4.replay.calibration import TOLERANCE

__all__ = [
    "BLOCKS",
    "CALIBRATIONS",
    "COHORTS",
    "COMPARED_GATES",
    "FAMILY_LABELS",
    "GATE_SIGNALS",
    "H_SWEEP",
    "METHOD_LABELS",
    "OUTCOMES",
    "PAIRED",
    "PHASES",
    "REPLAYED",
    "REPORTS",
    "SETTLING",
    "TEXTS",
    "TIME_SHARES",
    "TOLERANCE",
    "TRACE",
    "Column",
    "Library",
    "ReportTable",
    "TableFormat",
    "TaskEvaluation",
    "best_source",
    "block_usage",
    "calibration_table",
    "cohort_table",
    "evaluate_run",
    "family_of",
    "find_calibrations",
    "gate_signals",
    "h_sweep",
    "held_out",
    "in_order",
    "make_report",
    "mcnemar",
    "method_label",
    "method_totals",
    "model_label",
    "paired_table",
    "past_tolerance",
    "phase_summary",
    "phase_table",
    "pool_note",
    "published",
    "render_tables",
    "scaling_table",
    "settled_by",
    "settled_interval",
    "show_cell",
    "stabilization",
    "stabilization_summary",
    "task_label",
    "telling_trajectory",
    "text_table",
    "time_shares",
    "trace_table",
    "wino_table",
]
