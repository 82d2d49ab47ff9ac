"""Tables on stdout."""

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
