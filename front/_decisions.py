"""Decisions of gates on a recording, as a frame that displays its own summary."""

from typing import Any

import polars as pl

from c4._html import frame_table
from c4.replay import summarise_decisions

SHOWN = ("gate", "n", "accuracy", "full_accuracy", "steps", "saving", "fired", "premature")
"""Columns of the summary that are shown above the rows."""


class Decisions(pl.DataFrame):
    """One row per trajectory and gate; a Polars frame with a `summary`.

    The columns are those of `c4.replay.DECISIONS`. `filter` and `sort` return `Decisions`; other
    Polars methods return plain frames, which `c4.Decisions(frame)` converts. Figures take both.
    """

    def filter(self, *predicates: Any, **constraints: Any) -> "Decisions":
        """Filter the rows like `polars.DataFrame.filter`."""
        return Decisions(super().filter(*predicates, **constraints))

    def sort(self, by: Any, *more_by: Any, **options: Any) -> "Decisions":
        """Sort the rows like `polars.DataFrame.sort`."""
        return Decisions(super().sort(by, *more_by, **options))

    @property
    def summary(self) -> pl.DataFrame:
        """Accuracy, steps and savings per recording and gate, next to the full decode's."""
        return summarise_decisions(self)

    def __repr__(self) -> str:
        with pl.Config(tbl_rows=-1, tbl_cols=-1, tbl_hide_dataframe_shape=True):
            shown = repr(self._shown())
        return f"<Decisions, {self.height} rows; .summary:\n{shown}>"

    def _repr_html_(self, **options: bool) -> str:
        return frame_table(self._shown()) + super()._repr_html_(**options)

    def _shown(self) -> pl.DataFrame:
        summary = self.summary
        several = [name for name in ("model", "task") if summary[name].n_unique() > 1]
        split = ["split"] if summary["split"].is_not_null().any() else []
        return pl.DataFrame(summary.select(*several, *SHOWN[:1], *split, *SHOWN[1:]))
