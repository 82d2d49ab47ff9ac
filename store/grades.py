"""Grades of a run: those it was made with, and those that were added beside it afterwards."""

import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from c4.store.columns import check_columns, table_schema
from c4.store.locations import Location
from c4.store.parts import COVERS_KEY, Part, list_parts, naming
from c4.store.rows import GRADE
from c4.tasks import AnswerReading, Verdict

GRADES = table_schema(["trajectory", *GRADE, "version", "number"], nullable=["answer"])
"""Grades given after the decode. They are added; what was recorded stays."""


class Grades:
    """What the rows of a run are worth under one reading; of several grades the last counts.

    A grade that the machine failed to give counts only where there is no other.
    """

    def __init__(self, folder: Location, digest: str, reading: AnswerReading) -> None:
        self.reading = reading
        self._added: dict[int, list[dict[str, Any]]] = {}
        # Two graders that work at once may give the same number: then the order of the files'
        # names decides, which is the same for every reader.
        added = sorted(read_added(folder, digest), key=lambda row: row["number"], reverse=True)
        for row in added:
            grade = {name: row[name] for name in GRADE}
            self._added.setdefault(row["trajectory"], []).append(grade)

    def of(self, trajectory: int, own: Mapping[str, Any]) -> dict[str, Any]:
        """A row's grade under the reading, its own or one that was added.

        Where there is none, answer and verdict are None, and the rest is that of a grade under
        another reading, or None where nobody ever graded it.
        """
        known = [*self._added.get(trajectory, ()), {name: own[name] for name in GRADE}]
        reading = asdict(self.reading).items()
        given = [grade for grade in known if reading <= grade.items()]
        if given:
            return min(given, key=lambda grade: grade["verdict"] == Verdict.NOT_GRADABLE)
        other = next((grade for grade in known if grade["style"] is not None), known[-1])
        return other | {"answer": None, "verdict": None}


def read_added(folder: Location, digest: str) -> list[dict[str, Any]]:
    """All grades that were added to a run, file by file. See `GRADES`."""
    return [row for part in list_grades(folder) for row in read_grades(part, digest)]


def list_grades(folder: Location) -> list[Part]:
    """The files of grades that were added to a run."""
    return list_parts(folder / "grades")


def newest_grade(folder: Location, digest: str) -> int:
    """The number of the grade that was added last; 0 where none was."""
    return max((row["number"] for row in read_added(folder, digest)), default=0)


def read_grades(part: Part, digest: str) -> list[dict[str, Any]]:
    """The grades in one part; or an error that names it."""
    part.load(digest)
    with naming(part.path):
        table = part.file.read()
        check_columns(table, GRADES)
        numbers = table.column("trajectory").to_pylist()
        covers = [min(numbers), max(numbers), len(numbers)]
        if json.loads(part.metadata[COVERS_KEY]) != covers:
            raise ValueError("it does not hold the trajectories that it names")
        part.forget()
        rows: list[dict[str, Any]] = table.to_pylist()
        return rows
