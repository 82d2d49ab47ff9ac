"""Grading a recording after the fact."""

from collections.abc import Iterator
from pathlib import Path

from c4.record._run import open_run
from c4.record._store import RunWriter
from c4.tasks import Grade, check_can_grade, get_task, grade


def regrade(
    folder: Path, *, everything: bool = False, unsafe_code: bool = False
) -> Iterator[Grade]:
    """Grade the trajectories that have no grade, or all; yields each, and keeps all it gave."""
    task = get_task(open_run(folder).task)
    check_can_grade(task, unsafe_code=unsafe_code)
    with RunWriter(folder) as writer:
        run = open_run(folder)
        for part in run.parts:
            given: dict[int, Grade] = {}
            try:
                for row in run.read_rows(part):
                    if everything or row.correct is None:
                        given[row.trajectory] = grade(
                            task, row.example, row.text, unsafe_code=unsafe_code
                        )
                        yield given[row.trajectory]
            finally:  # an interruption keeps what it has
                if given:
                    writer.add_grades(given)
