"""The one place that prints.

Much of what c4 says was written by others: names of folders and models, rows of tasks, what models
answer, what files hold. None of it may steer a terminal, so everything goes out through here, and
nothing goes out that is not `visible`. Results go to stdout, all else to stderr.
"""

import io
import logging
import sys
from collections.abc import Iterable
from contextlib import AbstractContextManager, redirect_stdout
from typing import Any

import typer
from rich.console import Console, ConsoleOptions, RenderableType
from rich.logging import RichHandler
from rich.segment import Segment
from rich.text import Text

from c4.errors.text import visible, visible_json

PIPE_WIDTH = 140
"""Columns of text where there is no terminal to ask."""


class SafeConsole(Console):
    """A console that shows text as it is: no markup, no emoji codes, nothing invisible."""

    def __init__(self, **options: Any) -> None:
        # Names come from users, and may have brackets and colons.
        super().__init__(markup=False, emoji=False, **options)

    def render_str(self, text: str, **options: Any) -> Text:
        return super().render_str(visible(text), **options)

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        # Whatever becomes of a text on its way, it ends as a segment. Control segments are rich's
        # own: they move the cursor of a progress bar.
        for segment in super().render(renderable, options):
            text, style, control = segment
            yield segment if control else Segment(visible(text), style)


console = SafeConsole(stderr=True)
"""Where progress and log messages go."""


def say(text: str, *, err: bool = False) -> None:
    """Print a text, on stdout unless told otherwise."""
    typer.echo(visible(text), err=err)


def results_aside() -> AbstractContextManager[Any]:
    """While it lasts, what commands print as their results goes to stderr."""
    return redirect_stdout(sys.stderr)


def say_json(value: Any) -> None:
    """Print a value for machines, on one line of stdout."""
    typer.echo(visible_json(value))


def complain(message: str) -> None:
    """Print an error. Its further lines are indented, so that none can pass for another error."""
    first, *others = visible(message).split("\n")
    lines = [f"error: {first}", *(f"  {line.removeprefix('  ')}" for line in others)]
    typer.secho("\n".join(lines), err=True, fg=typer.colors.RED)


def show(table: RenderableType) -> None:
    """Print a table or a text as wide as the terminal, or wide enough where there is none."""
    output = SafeConsole()
    if not output.is_terminal:
        output = SafeConsole(width=PIPE_WIDTH)
    output.print(table)


def log_handler() -> logging.Handler:
    """A handler that prints log messages between progress bars."""
    handler = RichHandler(console=console, show_path=False, show_time=False)
    handler.setFormatter(VisibleFormatter("%(message)s"))
    handler.addFilter(OnceFromOthers())
    return handler


class OnceFromOthers(logging.Filter):
    """Lets a message of another library pass once: the hub's come again with every file."""

    def __init__(self) -> None:
        super().__init__()
        self._seen: set[str] = set()

    def filter(self, record: logging.LogRecord) -> bool:
        if record.name.partition(".")[0] == "c4":
            return True
        message = record.getMessage()
        known = message in self._seen
        self._seen.add(message)
        return not known


class VisibleFormatter(logging.Formatter):
    """Writes log messages as they are shown."""

    def format(self, record: logging.LogRecord) -> str:
        return visible(super().format(record))


def open_streams() -> None:
    """Let stdout and stderr spell out what their encoding does not have, instead of failing."""
    for stream in filter(None, (sys.stdout, sys.stderr)):  # a shell can close them
        if isinstance(stream, io.TextIOWrapper):  # and not what a test put there
            stream.reconfigure(errors="backslashreplace")


def close_streams() -> OSError | None:
    """Hand over what is still held back. Returns what went wrong with it."""
    trouble = None
    for stream in filter(None, (sys.stdout, sys.stderr)):
        try:
            stream.flush()
        except OSError as error:
            trouble = trouble or error
    return trouble
