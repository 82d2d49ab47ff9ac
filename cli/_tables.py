"""Tables on stdout."""

from rich import box
from rich.console import Console, RenderableType
from rich.table import Table

PIPE_WIDTH = 140
"""Columns of text where there is no terminal to ask."""


def new_table(*columns: str, title: str | None = None) -> Table:
    return Table(*columns, title=title, box=box.SIMPLE_HEAD, pad_edge=False, title_justify="left")


def show(table: RenderableType) -> None:
    """Print a table or a text as wide as the terminal, or wide enough where there is none."""
    # Names come from users, and may have brackets.
    output = Console(markup=False)
    if not output.is_terminal:
        output = Console(markup=False, width=PIPE_WIDTH)
    output.print(table)


def percent(share: float | None) -> str:
    """A share in percent; a dash where there is nothing to take it of."""
    return "–" if share is None else f"{share:.1%}"
