"""Programs that a user asks the viewer to run."""

from typing import Any

from c4.errors import ConfigError
from c4.gates.candidates import filled_predictions
from c4.view._cohort import cohort_of
from c4.view.shelf import Book, Shelf


def run_at(shelf: Shelf, book: Book, index: int, step: int) -> dict[str, Any]:
    """Grade the text that a final fill at a step would have left, by running it in the sandbox."""
    recorded = book.trajectory(index)
    if not 1 <= step <= recorded.row.steps:
        raise ConfigError(f"trajectory {index} has steps 1 to {recorded.row.steps}, not {step}")
    filled = filled_predictions(recorded.cells.token, recorded.cells.masked)
    given = book.grader.grade(recorded.row, filled[step - 1].tolist())
    cohort_of(shelf, book).learn(index)
    return {"step": step, "correct": given.correct, "verdict": str(given.verdict)}
