"""Accuracy, stabilization and speed of a model at full budget, per task."""

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np
import polars as pl

from c4.analysis.stabilization import settled_by, stabilization_table
from c4.analysis.statistics import wilson_interval
from c4.gates.run_signals import load_signals
from c4.store.runs import Run


@dataclass(frozen=True)
class TaskEvaluation:
    """Accuracy, stabilization and speed on one task."""

    task: str
    family: str
    n: int
    graded: int
    """Number of graded answers; `accuracy` is computed over them."""
    not_gradable: int
    """Number of answers that could not be graded; they count neither as right nor as wrong."""
    accuracy: float | None
    """None if no answer was graded."""
    interval: tuple[float, float] | None
    """The 95% Wilson interval of `accuracy`."""
    s_50: float | None
    s_90: float | None
    """Progress by which 50% and 90% of the answers have settled for good."""
    located: float
    """Share of decodes whose final answer could be located at token positions."""
    mean_seconds: float
    """Mean seconds per decode."""


def evaluate_run(run: Run, indices: Collection[int] | None = None) -> TaskEvaluation:
    """Evaluate a recording, or only the trajectories in `indices`."""
    task = run.task
    wanted = set(run.indices if indices is None else indices)
    rows = [row for row in run.rows() if row.trajectory in wanted]
    graded = [row.correct for row in rows if row.correct is not None]
    progress = stabilization_table(run).filter(pl.col("trajectory").is_in(wanted))["stabilization"]
    parts = list(load_signals(run))
    located = np.concatenate([part.signals.last("span_start")[:, 0] >= 0 for part in parts])
    chosen = np.isin(np.concatenate([part.trajectory for part in parts]), list(wanted))
    return TaskEvaluation(
        task=task.name,
        family=task.family,
        n=len(rows),
        graded=len(graded),
        not_gradable=sum(row.not_gradable for row in rows),
        accuracy=float(np.mean(graded)) if graded else None,
        interval=wilson_interval(sum(graded), len(graded)) if graded else None,
        s_50=settled_by(progress, 0.5),
        s_90=settled_by(progress, 0.9),
        located=float(located[chosen].mean()),
        mean_seconds=float(np.mean([row.wall_seconds for row in rows])),
    )
