"""Analysis: what recordings say, as frames and numbers. Draws nothing."""

from c4.analysis._evaluation import TaskEvaluation, evaluate_run
from c4.analysis._evidence import COMPARED_GATES, Evidence
from c4.analysis._exits import (
    GATE_SIGNALS,
    PHASES,
    gate_signals,
    phase_summary,
    phase_table,
)
from c4.analysis._names import (
    FAMILY_LABELS,
    METHOD_LABELS,
    family_of,
    in_order,
    method_label,
    model_label,
    task_label,
)
from c4.analysis._outcomes import OUTCOMES, best_source, held_out, method_totals
from c4.analysis._stabilization import (
    SETTLING,
    settled_by,
    settled_interval,
    stabilization,
    stabilization_summary,
)

__all__ = [
    "COMPARED_GATES",
    "FAMILY_LABELS",
    "GATE_SIGNALS",
    "METHOD_LABELS",
    "OUTCOMES",
    "PHASES",
    "SETTLING",
    "Evidence",
    "TaskEvaluation",
    "best_source",
    "evaluate_run",
    "family_of",
    "gate_signals",
    "held_out",
    "in_order",
    "method_label",
    "method_totals",
    "model_label",
    "phase_summary",
    "phase_table",
    "settled_by",
    "settled_interval",
    "stabilization",
    "stabilization_summary",
    "task_label",
]
