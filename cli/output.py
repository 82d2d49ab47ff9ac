"""Printing: all output of c4 goes through this module.

Much of the printed text was written by others: names of folders and models, rows of tasks, answers
of models, contents of files. None of it may control the terminal, so every text is made `visible`
before it is printed. Results go to stdout, all other output to stderr.
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
"""Width of the output in columns if stdout is not a terminal."""


class SafeConsole(Console):
    """Console that prints text literally: no markup, no emoji codes, no invisible characters."""

    def __init__(self, **options: Any) -> None:
        # Names come from users and may contain brackets and colons.
        super().__init__(markup=False, emoji=False, **options)

    def render_str(self, text: str, **options: Any) -> Text:
        return super().render_str(visible(text), **options)

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        # Every text ends up in a segment, however it was rendered. Control segments are rich's
        # own: they move the cursor of a progress bar.
        for segment in super().render(renderable, options):
            text, style, control = segment
            yield segment if control else Segment(visible(text), style)


console = SafeConsole(stderr=True)
"""Console on stderr for progress and log messages."""


def say(text: str, *, err: bool = False) -> None:
    """Print a text to stdout, or to stderr if `err`."""
    typer.echo(visible(text), err=err)


def results_aside() -> AbstractContextManager[Any]:
    """Return a context manager that sends the results of commands to stderr."""
    return redirect_stdout(sys.stderr)


def say_json(value: Any) -> None:
    """Print a value to stdout as one line of JSON."""
    typer.echo(visible_json(value))


def complain(message: str) -> None:
    """Print an error to stderr. Later lines are indented, so that none looks like another error."""
    first, *others = visible(message).split("\n")
    lines = [f"error: {first}", *(f"  {line.removeprefix('  ')}" for line in others)]
    typer.secho("\n".join(lines), err=True, fg=typer.colors.RED)


def show(table: RenderableType) -> None:
    """Print a table or a text in the terminal's width, or in `PIPE_WIDTH` without a terminal."""
    output = SafeConsole()
    if not output.is_terminal:
        output = SafeConsole(width=PIPE_WIDTH)
    output.print(table)


def log_handler() -> logging.Handler:
    """Return a handler that prints log messages above progress bars."""
    handler = RichHandler(console=console, show_path=False, show_time=False)
    handler.setFormatter(VisibleFormatter("%(message)s"))
    handler.addFilter(OnceFromOthers())
    return handler


class OnceFromOthers(logging.Filter):
    """Filter that drops repeated messages of other libraries; the hub's recur with every file."""

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
    """Formatter that makes log messages `visible`."""

    def format(self, record: logging.LogRecord) -> str:
        return visible(super().format(record))


def open_streams() -> None:
    """Let stdout and stderr escape characters that their encoding lacks, instead of failing."""
    for stream in filter(None, (sys.stdout, sys.stderr)):  # a shell can close them
        if isinstance(stream, io.TextIOWrapper):  # a test may put another object there
            stream.reconfigure(errors="backslashreplace")


def close_streams() -> OSError | None:
    """Flush stdout and stderr. Returns the first error, or None."""
    trouble = None
    for stream in filter(None, (sys.stdout, sys.stderr)):
        try:
            stream.flush()
        except OSError as error:
            trouble = trouble or error
    return trouble
