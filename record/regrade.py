"""Grading a run after it was decoded, by one worker or several that share the parts."""

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
"""Number of rows after which grades are saved, because programs take long to run."""


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

    Yields each trajectory that is graded, with its grade. All are saved, unless the machine failed
    on an answer that has a better verdict already.

    Args:
        tasks: the tasks that the user named; a run's task that is code must be among them.
        everything: grade again what has a grade under the reading already.
        since: the newest grade when the grading began; what has a newer one is not graded again.
        sign: who grades, where that matters to others.
    """
    task = open_run(folder, reading, tasks).task
    check_can_grade(task, reading, unsafe_code=unsafe_code)
    with RunWriter(folder, sign) as writer:
        run = open_run(folder, reading, tasks)
        writer.go_on(replace(run.manifest, environment=programs()))
        newest = newest_grade(folder, run.manifest.digest) if since is None else since
        grading = Grading(writer, run, task, Newer(run, newest), everything, unsafe_code)
        yield from grading.shared({f"grade-{part.first:06d}": part for part in run.parts})


@dataclass
class Newer:
    """The trajectories that were graded since a grading began. Every file is read once."""

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
    """Counts what has been graded since a grading began."""

    def __init__(self, run: Run, wanted: set[int], since: int) -> None:
        super().__init__(run.folder, wanted)
        self._newer = Newer(run, since)

    def _done(self) -> int:
        return len(self._newer.look().intersection(self.wanted or ()))


@dataclass
class Grading:
    """One worker's share of a grading."""

    writer: RunWriter
    run: Run
    task: Task
    newer: Newer
    everything: bool
    unsafe_code: bool

    def shared(self, parts: dict[str, Part]) -> Iterator[tuple[int, Grade]]:
        """Grade part after part, each claimed first; wait for those that others grade."""
        claims = self.writer.claims
        while parts:
            claim = claims.take(parts)
            if claim is None:
                time.sleep(claims.pause)
                continue
            yield from self._grade_rows(self._ungraded(parts.pop(claim.name)))
            claims.release(claim.name)

    def _ungraded(self, part: Part) -> Iterator[Row]:
        done = self.newer.look()
        for row in self.run.read_rows(part):
            if row.trajectory not in done and (self.everything or row.correct is None):
                yield row

    def _grade_rows(self, rows: Iterator[Row]) -> Iterator[tuple[int, Grade]]:
        while some := list(islice(rows, ROWS_AT_A_TIME)):
            yield from self._grade_some(some)

    def _grade_some(self, rows: Sequence[Row]) -> Iterator[tuple[int, Grade]]:
        given: dict[int, Grade] = {}
        reading, unsafe = self.run.reading, self.unsafe_code
        try:
            for row in rows:
                text = self.run.text(row.final_ids)
                new = grade(self.task, row.example, text, reading, unsafe_code=unsafe)
                if row.correct is None or new.correct is not None:
                    given[row.trajectory] = new
                yield row.trajectory, new
        finally:  # an interruption keeps what it has
            if given:
                self.writer.add_grades(given, reading)
