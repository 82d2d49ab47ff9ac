"""Grades of texts that were not graded when they were decoded."""

from collections.abc import Sequence

from c4.store.rows import Row
from c4.store.runs import Run
from c4.tasks import Family, Grade, Grader, Verdict, grade


class ReplayGrader:
    """Grades texts of a run under its reading; caches grades, since running programs is slow."""

    def __init__(self, run: Run, unsafe_code: bool, *, on_demand: bool = False) -> None:
        """Prepare to grade.

        Args:
            on_demand: run programs only in `grade`; `correct` returns None for those not yet run.
        """
        self.run = run
        self.task = run.task
        self.unsafe_code = unsafe_code
        executes = run.task.family is Family.CODE or run.reading.grader is not Grader.EXACT
        self.waits = on_demand and executes
        """Whether grading runs programs and is therefore deferred until `grade` is called."""
        self._known: dict[tuple[int, str], Grade] = {}

    @property
    def by_form(self) -> bool:
        """Whether grading compares answers only, so that signals are enough to grade."""
        return self.run.reading.grader is Grader.EXACT and self.task.grades_by_form

    def correct(self, row: Row, ids: Sequence[int]) -> bool | None:
        """Whether the tokens solve the row's problem; None if not gradable or not graded yet."""
        text = self.run.text(ids)
        if (self.waits or row.correct is not None) and text == self.run.text(row.final_ids):
            return row.correct
        if self.waits:
            known = self._known.get((row.trajectory, text))
            return known.correct if known else None
        return self._grade(row, text).correct

    def grade(self, row: Row, ids: Sequence[int]) -> Grade:
        """Grade the answer in the tokens."""
        return self._grade(row, self.run.text(ids))

    def own(self, row: Row) -> Grade | None:
        """Return the grade of a row's final tokens; None if it was never graded."""
        if row.graded_otherwise:
            return self._grade(row, self.run.text(row.final_ids))
        return None if row.verdict is None else Grade(row.answer, Verdict(row.verdict))

    def _grade(self, row: Row, text: str) -> Grade:
        key = (row.trajectory, text)
        if key in self._known:
            return self._known[key]
        given = grade(self.task, row.example, text, self.run.reading, unsafe_code=self.unsafe_code)
        if given.correct is not None:  # a failure of the machine may not recur
            self._known[key] = given
        return given
