"""Grades of a run: those recorded with it, and those added to it later."""

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
"""Grades given after the decode. They are added; recorded grades are kept."""


class Grades:
    """Grades of a run's rows under one reading; of several grades the last counts.

    A grade that the machine failed to compute counts only if there is no other.
    """

    def __init__(self, folder: Location, digest: str, reading: AnswerReading) -> None:
        self.reading = reading
        self._added: dict[int, list[dict[str, Any]]] = {}
        # Two workers that grade at once may use the same number. The order of file names then
        # decides, which is the same for every reader.
        added = sorted(read_added(folder, digest), key=lambda row: row["number"], reverse=True)
        for row in added:
            grade = {name: row[name] for name in GRADE}
            self._added.setdefault(row["trajectory"], []).append(grade)

    def of(self, trajectory: int, own: Mapping[str, Any]) -> dict[str, Any]:
        """Return a row's grade under the reading, recorded with it or added.

        If there is none, answer and verdict are None, and the other fields come from a grade under
        another reading, or are None if the row was never graded.
        """
        known = [*self._added.get(trajectory, ()), {name: own[name] for name in GRADE}]
        reading = asdict(self.reading).items()
        given = [grade for grade in known if reading <= grade.items()]
        if given:
            return min(given, key=lambda grade: grade["verdict"] == Verdict.NOT_GRADABLE)
        other = next((grade for grade in known if grade["style"] is not None), known[-1])
        return other | {"answer": None, "verdict": None}


def read_added(folder: Location, digest: str) -> list[dict[str, Any]]:
    """Read all grades that were added to a run, file by file. See `GRADES`."""
    return [row for part in list_grades(folder) for row in read_grades(part, digest)]


def list_grades(folder: Location) -> list[Part]:
    """List the parts of grades that were added to a run."""
    return list_parts(folder / "grades")


def newest_grade(folder: Location, digest: str) -> int:
    """Return the highest number of the added grades; 0 if there are none."""
    return max((row["number"] for row in read_added(folder, digest)), default=0)


def read_grades(part: Part, digest: str) -> list[dict[str, Any]]:
    """Read the grades in one part; errors name its file."""
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
