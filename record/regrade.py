"""Grading a decoded run, by one worker or by several that share the parts."""

import time
from collections.abc import Collection, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import islice

from c4.record.environment import programs
from c4.record.progress import ProgressWatch
from c4.store.claims import Sign
from c4.store.grades import newest_grade, read_grades
from c4.store.locations import Location
from c4.store.parts import Part, list_parts
from c4.store.rows import Row
from c4.store.runs import Run, open_run
from c4.store.writer import RunWriter
from c4.tasks import AnswerReading, Grade, Task, grade
from c4.tasks.grading import check_can_grade

ROWS_AT_A_TIME = 32
"""Number of rows after which grades are saved; small, because programs take long to run."""


def regrade(
    folder: Location,
    reading: AnswerReading | None = None,
    *,
    tasks: Collection[Task] = (),
    everything: bool = False,
    unsafe_code: bool = False,
    since: int | None = None,
    sign: Sign | None = None,
) -> Iterator[tuple[int, Grade]]:
    """Grade the answers of a run that have no verdict under a reading, or are not gradable.

    Yields each graded trajectory with its grade. Grades are saved, except a "not gradable" one for
    an answer that already has a verdict.

    Args:
        tasks: the tasks that the user named; needed if the run's task is defined by code.
        everything: also grade answers that already have a grade under the reading.
        since: number of the newest grade when the grading began; answers with a newer one are kept.
        sign: this worker's first sign of life, for other workers and progress displays.
    """
    task = open_run(folder, reading, tasks).task
    check_can_grade(task, reading, unsafe_code=unsafe_code)
    with RunWriter(folder, sign) as writer:
        run = open_run(folder, reading, tasks)
        writer.go_on(replace(run.manifest, environment=programs()))
        newest = newest_grade(folder, run.manifest.digest) if since is None else since
        newer, claims = Newer(run, newest), writer.claims
        parts = {f"grade-{part.first:06d}": part for part in run.parts}
        while parts:
            claim = claims.take(parts)
            if claim is None:  # other workers grade the remaining parts
                time.sleep(claims.pause)
                continue
            done = newer.look()
            rows = (
                row
                for row in run.read_rows(parts.pop(claim.name))
                if row.trajectory not in done and (everything or row.correct is None)
            )
            while some := list(islice(rows, ROWS_AT_A_TIME)):
                yield from _grade_rows(writer, run, some, unsafe_code=unsafe_code)
            claims.release(claim.name)


def _grade_rows(
    writer: RunWriter, run: Run, rows: Sequence[Row], *, unsafe_code: bool
) -> Iterator[tuple[int, Grade]]:
    """Grade some rows and save their grades together, also if interrupted."""
    given: dict[int, Grade] = {}
    try:
        for row in rows:
            text = run.text(row.final_ids)
            new = grade(run.task, row.example, text, run.reading, unsafe_code=unsafe_code)
            if row.correct is None or new.correct is not None:
                given[row.trajectory] = new
            yield row.trajectory, new
    finally:
        if given:
            writer.add_grades(given, run.reading)


@dataclass
class Newer:
    """Trajectories that were graded since a grading began. Reads every file only once."""

    run: Run
    since: int
    _read: set[Part] = field(default_factory=set)
    _found: set[int] = field(default_factory=set)

    def look(self) -> set[int]:
        reading = asdict(self.run.reading)
        for part in list_parts(self.run.folder / "grades"):
            if part in self._read:
                continue
            self._read.add(part)
            for row in read_grades(part, self.run.manifest.digest):
                if row["number"] > self.since and reading.items() <= row.items():
                    self._found.add(row["trajectory"])
        return self._found


class GradingWatch(ProgressWatch):
    """Counts the trajectories graded since a grading began."""

    def __init__(self, run: Run, wanted: set[int], since: int) -> None:
        super().__init__(run.folder, wanted)
        self._newer = Newer(run, since)

    def _done(self) -> int:
        return len(self._newer.look().intersection(self.wanted or ()))
