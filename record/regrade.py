"""Grading a run after it was decoded."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import islice

from c4.record.environment import programs
from c4.store.locations import Location
from c4.store.runs import open_run
from c4.store.writer import RunWriter
from c4.tasks import AnswerReading, Grade, get_task, grade
from c4.tasks.grading import check_can_grade

ROWS_AT_A_TIME = 32
"""Number of rows after which grades are saved, because programs take long to run."""


def regrade(
    folder: Location,
    reading: AnswerReading | None = None,
    *,
    everything: bool = False,
    unsafe_code: bool = False,
) -> Iterator[Grade]:
    """Grade the answers of a run that have no verdict under a reading, or are not gradable.

    Yields each grade. All are saved, unless the machine failed on an answer that has a better
    verdict already.

    Args:
        everything: grade again what has a grade under the reading already.
    """
    task = get_task(open_run(folder, reading).task)
    check_can_grade(task, reading, unsafe_code=unsafe_code)
    with RunWriter(folder) as writer:
        run = open_run(folder, reading)
        writer.go_on(replace(run.manifest, environment=programs()))
        rows = (row for row in run.rows() if everything or row.correct is None)
        while some := list(islice(rows, ROWS_AT_A_TIME)):
            given: dict[int, Grade] = {}
            try:
                for row in some:
                    text = run.text(row.final_ids)
                    new = grade(task, row.example, text, run.reading, unsafe_code=unsafe_code)
                    if row.correct is None or new.correct is not None:
                        given[row.trajectory] = new
                    yield new
            finally:  # an interruption keeps what it has
                if given:
                    writer.add_grades(given, run.reading)
