"""Embedded problems: one generator per task, in the task's own fields, without end.

`problem(task, index)` is deterministic. Indices below `EVALUATION` are for evaluation, all
others for training, and every evaluation problem holds a combination that training never sees.
"""

from importlib import import_module
from pathlib import Path

from c4.tasks.problems._problem import EVALUATION, Problem, draw, held_out
from c4.tasks.problems._stories import equation

EMBEDDED_TASKS = frozenset(
    path.stem for path in Path(__file__).parent.glob("*.py") if not path.stem.startswith("_")
)
"""Tasks that have a generator here."""

__all__ = ["EMBEDDED_TASKS", "EVALUATION", "Problem", "equation", "held_out", "problem"]


def problem(task: str, index: int) -> Problem:
    """The embedded problem of a task with this number."""
    generator = import_module(f"c4.tasks.problems.{task}")
    return draw(task, generator.generate, index)
