"""Grading a recording after the fact."""

from collections.abc import Iterator
from pathlib import Path

from c4.record._run import open_run
from c4.record._store import RunWriter
from c4.tasks import Grade, check_can_grade, get_task, grade


def regrade(
    folder: Path, *, everything: bool = False, unsafe_code: bool = False
) -> Iterator[Grade]:
    """Grade the trajectories that have no grade, or all; yields each, and keeps them at the end."""
    run = open_run(folder)
    task = get_task(run.task)
    check_can_grade(task, unsafe_code=unsafe_code)
    grades = {}
    with RunWriter(folder) as writer:
        for row in run.rows():
            if everything or row.correct is None:
                given = grade(task, row.example, row.text, unsafe_code=unsafe_code)
                grades[row.trajectory] = given
                yield given
        if grades:
            writer.add_grades(grades)
