"""Analysis: what recordings say, as frames and numbers. Draws nothing."""

from c4.analysis._evaluation import TaskEvaluation, evaluate_run
from c4.analysis._stabilization import settled_by, stabilization

__all__ = ["TaskEvaluation", "evaluate_run", "settled_by", "stabilization"]
