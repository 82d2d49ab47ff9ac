"""Progress on stderr: a bar on a terminal, and an occasional line elsewhere."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Protocol

from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.text import Text

from c4.cli._output import console, say
from c4.errors.text import visible_line

SECONDS_BETWEEN_LINES = 10.0


class Advance(Protocol):
    def __call__(self, note: str = "") -> None: ...


@contextmanager
def progress(description: str, total: int) -> Iterator[Advance]:
    """Yield a function to be called once for every unit that is done."""
    if console.is_terminal:
        columns = (
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("eta"),
            TimeRemainingColumn(),
            TextColumn("{task.fields[note]}", markup=False),
        )
        with Progress(*columns, console=console, transient=True) as bar:
            task = bar.add_task(visible_line(description), total=total, note="")
            yield lambda note="": bar.update(task, advance=1, note=visible_line(note))
    else:
        yield _Lines(description, total)


class _Lines:
    def __init__(self, description: str, total: int) -> None:
        self.description = description
        self.total = total
        self.done = 0
        self.began = self.last = time.monotonic()

    def __call__(self, note: str = "") -> None:
        self.done += 1
        if time.monotonic() - self.last >= SECONDS_BETWEEN_LINES:
            self.last = time.monotonic()
            say(f"{self.description}: {self.done} of {self.total}, {self._left()} {note}", err=True)

    def _left(self) -> str:
        """How long the rest will take if it goes on as before."""
        seconds = (self.last - self.began) / self.done * (self.total - self.done)
        return f"eta {timedelta(seconds=round(max(0.0, seconds)))}"


@contextmanager
def status(text: str) -> Iterator[Callable[[str], None]]:
    """Yield a function that shows what is being done, beside a spinner or as lines."""
    if console.is_terminal:
        with console.status(Text(visible_line(text))) as spinner:
            yield lambda text: spinner.update(Text(visible_line(text)))
    else:
        yield lambda text: say(text, err=True)
