"""Grades that were added beside a run after it was made."""

from pathlib import Path
from typing import Any

from c4.record._format import list_parts, open_part


def newest_grades(folder: Path) -> dict[int, dict[str, Any]]:
    """The answer and correctness of every example that was graded later; the newest grade counts.

    Whoever reads rows lays these over them, of a recording and of a live run alike.
    """
    parts = list_parts(folder / "grades")
    added = [row for part in parts for row in open_part(part).read().to_pylist()]
    return {
        row["trajectory"]: {"answer": row["answer"], "correct": row["correct"]}
        for row in sorted(added, key=lambda row: row["graded"])
    }
