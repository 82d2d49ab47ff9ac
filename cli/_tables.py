"""Tables on stdout."""

from collections.abc import Mapping

from rich import box
from rich.console import Console, RenderableType
from rich.table import Table

PIPE_WIDTH = 140
"""Width of tables, in characters, when output does not go to a terminal."""


def not_gradable_note(counts: Mapping[str, int]) -> str:
    """How many answers the machine failed to grade, by where they are; empty where none."""
    found = ", ".join(f"{count} of {where}" for where, count in counts.items() if count)
    told = "not gradable, because the machine failed, and counted neither as right nor as wrong"
    return f"{told}: {found}" if found else ""


def new_table(*columns: str, title: str | None = None) -> Table:
    return Table(*columns, title=title, box=box.SIMPLE_HEAD, pad_edge=False, title_justify="left")


def show(table: RenderableType) -> None:
    """Print a table or a text as wide as the terminal, or as `PIPE_WIDTH` if there is none."""
    # Names come from users, and may have brackets.
    output = Console(markup=False)
    if not output.is_terminal:
        output = Console(markup=False, width=PIPE_WIDTH)
    output.print(table)


def percent(share: float | None) -> str:
    """A share in percent; a dash where there is nothing to take it of."""
    return "–" if share is None else f"{share:.1%}"
