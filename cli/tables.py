"""Tables on stdout."""

from collections.abc import Mapping
from typing import Any

from rich import box
from rich.table import Table

from c4.errors.text import visible_line


class TextTable(Table):
    """A table of texts, each cell on a line of its own unless it must be folded."""

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
    """A share in percent; a dash where there is nothing to take it of."""
    return "–" if share is None else f"{share:.1%}"


def not_gradable_note(counts: Mapping[str, int]) -> str:
    """How many answers the machine failed to grade, by where they are; empty where none."""
    found = ", ".join(f"{count} of {where}" for where, count in counts.items() if count)
    told = "not gradable, because the machine failed, and counted neither as right nor as wrong"
    return f"{told}: {found}" if found else ""
