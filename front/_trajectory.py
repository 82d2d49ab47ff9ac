"""One decode, for a notebook: what it was asked, what it answered, and how it came to that."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import polars as pl

from c4._html import facts_table, text_block
from c4.errors import ConfigError
from c4.errors.text import visible_line
from c4.gates.candidates import filled_predictions
from c4.store.runs import Trajectory as StoredTrajectory

if TYPE_CHECKING:
    from c4._run import Run

LONGEST = 40
"""Characters of an answer that a repr shows."""


@dataclass(frozen=True, repr=False)
class Trajectory(StoredTrajectory):
    """One decode of a run: its `row`, its `cells`, its `steps`, and the text at any step."""

    run: "Run"

    @property
    def number(self) -> int:
        """The example's number within its task."""
        return self.row.trajectory

    @property
    def steps(self) -> pl.DataFrame:
        """What gates see, one row per step. The columns are those of `Run.signals`."""
        return self.run.signals.filter(pl.col("trajectory") == self.number)

    def text_at(self, step: int) -> str:
        """The text that a final fill at a step, counted from 1, would leave."""
        if not 1 <= step <= self.row.steps:
            raise ConfigError(f"trajectory {self.number} has steps 1 to {self.row.steps}")
        filled = filled_predictions(self.cells.token, self.cells.masked)
        return self.run.text(filled[step - 1].tolist())

    @property
    def outcome(self) -> str:
        """The verdict in a word: right, wrong, no_answer and so on, or ungraded."""
        return self.row.verdict or "ungraded"

    def __repr__(self) -> str:
        answer = self.row.answer or ""
        cut = answer if len(answer) <= LONGEST else f"{answer[: LONGEST - 1]}…"
        found = f"answer {cut!r}" if self.row.answer is not None else "no answer"
        told = f"{self.number} of {self.run.task_name}: {found}, {self.outcome}, {self._cost}"
        return f"<Trajectory {visible_line(told)}>"

    def _repr_html_(self) -> str:
        facts = {"answer": self.row.answer, "target": self.row.target, "verdict": self.outcome}
        title = f"trajectory {self.number} of {self.run.task_name}, {self._cost}"
        blocks = text_block("prompt", self.row.prompt) + text_block("text", self.row.text)
        return facts_table(title, facts) + blocks

    @property
    def _cost(self) -> str:
        return f"{self.row.steps} steps of {self.row.budget}"
