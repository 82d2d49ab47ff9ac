"""Grading a run after the fact."""

from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from c4.record._live import open_any
from c4.record._store import RunWriter
from c4.tasks import Grade, Grader, check_can_grade, get_task, grade

ROWS_AT_A_TIME = 32
"""After how many rows the grades are made safe: programs take long to run."""


def regrade(
    folder: Path,
    *,
    everything: bool = False,
    grader: Grader = Grader.EXACT,
    unsafe_code: bool = False,
) -> Iterator[Grade]:
    """Grade what has no grade in a recording or a live run, or all; yields each, and keeps all."""
    task = get_task(open_any(folder).task)
    check_can_grade(task, unsafe_code=unsafe_code, grader=grader)
    with RunWriter(folder) as writer:
        rows = (row for row in open_any(folder).rows() if everything or row.correct is None)
        while some := list(islice(rows, ROWS_AT_A_TIME)):
            given: dict[int, Grade] = {}
            try:
                for row in some:
                    given[row.trajectory] = grade(
                        task, row.example, row.text, grader=grader, unsafe_code=unsafe_code
                    )
                    yield given[row.trajectory]
            finally:  # an interruption keeps what it has
                if given:
                    writer.add_grades(given)
