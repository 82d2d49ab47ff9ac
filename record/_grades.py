"""Grades of a run: those it was made with, and those that were added beside it afterwards."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from c4.record._format import list_parts, open_part
from c4.tasks import AnswerReading

GRADE = ("answer", "correct", "style", "ending")
"""The columns of a grade: what was answered, whether it is right, and how it was read."""


class Grades:
    """What the rows of a run are worth under one reading; the newest grade counts.

    Whoever reads rows lays these over them, of a recording and of a live run alike.
    """

    def __init__(self, folder: Path, reading: AnswerReading) -> None:
        self.reading = reading
        parts = list_parts(folder / "grades")
        added = [row for part in parts for row in open_part(part).read().to_pylist()]
        self._added: dict[int, list[dict[str, Any]]] = {}
        for row in sorted(added, key=lambda row: row["graded"], reverse=True):
            grade = {name: row.get(name) for name in GRADE}
            self._added.setdefault(row["trajectory"], []).append(grade)

    def of(self, trajectory: int, own: Mapping[str, Any]) -> dict[str, Any]:
        """A row's grade under the reading, its own or one that was added.

        Where there is none, answer and correctness are None, and style and ending are those of a
        grade under another reading, or None where nobody ever graded it.
        """
        known = [*self._added.get(trajectory, ()), {name: own[name] for name in GRADE}]
        for grade in known:
            if (grade["style"], grade["ending"]) == (self.reading.style, self.reading.ending):
                return grade
        other = next((grade for grade in known if grade["style"] is not None), known[-1])
        return other | {"answer": None, "correct": None}
