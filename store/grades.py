"""Grades of a run: those it was made with, and those that were added beside it afterwards."""

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from c4.store.parts import list_parts, open_part
from c4.tasks import AnswerReading

GRADE = ("answer", "verdict", "style", "ending", "grader")
"""The columns of a grade: what was answered, what it is worth, and how it was read."""


class Grades:
    """What the rows of a run are worth under one reading; of several grades the last counts."""

    def __init__(self, folder: Path, digest: str, reading: AnswerReading) -> None:
        self.reading = reading
        added = read_added(folder, digest)
        self._added: dict[int, list[dict[str, Any]]] = {}
        for row in sorted(added, key=lambda row: row["number"], reverse=True):
            grade = {name: row[name] for name in GRADE}
            self._added.setdefault(row["trajectory"], []).append(grade)

    def of(self, trajectory: int, own: Mapping[str, Any]) -> dict[str, Any]:
        """A row's grade under the reading, its own or one that was added.

        Where there is none, answer and verdict are None, and the rest is that of a grade under
        another reading, or None where nobody ever graded it.
        """
        known = [*self._added.get(trajectory, ()), {name: own[name] for name in GRADE}]
        for grade in known:
            if all(grade[name] == value for name, value in asdict(self.reading).items()):
                return grade
        other = next((grade for grade in known if grade["style"] is not None), known[-1])
        return other | {"answer": None, "verdict": None}


def read_added(folder: Path, digest: str) -> list[dict[str, Any]]:
    """All grades that were added to a run, in no particular order. See `GRADES`."""
    parts = list_parts(folder / "grades")
    return [row for part in parts for row in open_part(part, digest).read().to_pylist()]
