"""Tables on stdout."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from rich import box
from rich.table import Table

from c4.errors.text import visible_line

if TYPE_CHECKING:
    from c4.tasks import AnswerReading


class TextTable(Table):
    """Table of texts that shows each cell on one line unless it must be folded."""

    def add_row(self, *cells: Any, **options: Any) -> None:
        shown = (visible_line(cell) if isinstance(cell, str) else cell for cell in cells)
        super().add_row(*shown, **options)


def new_table(*columns: str, title: str | None = None) -> Table:
    return TextTable(
        *map(visible_line, columns),
        title=title,
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        title_justify="left",
    )


def percent(share: float | None) -> str:
    """Format a share in percent; None becomes a dash."""
    return "–" if share is None else f"{share:.1%}"


def not_gradable_note(counts: Mapping[str, int]) -> str:
    """Return a note on answers that the machine failed to grade, by run; "" if there are none."""
    found = ", ".join(f"{count} of {where}" for where, count in counts.items() if count)
    told = "not gradable, because the machine failed, and counted neither as right nor as wrong"
    return f"{told}: {found}" if found else ""


def reading_note(reading: "AnswerReading") -> str:
    """Return a note on the reading of a table's answers; "" for the default reading."""
    from c4.tasks import AnswerReading

    return "" if reading == AnswerReading() else f"answers are read under {reading.options}"
