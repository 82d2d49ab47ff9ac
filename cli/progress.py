"""Progress on stderr: a bar on a terminal, and an occasional line elsewhere."""

import threading
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

from c4.cli.output import console, say
from c4.errors.text import visible_line

SECONDS_BEFORE_LINES = 2.0
"""What takes less is over before anybody wonders."""
SECONDS_BETWEEN_LINES = 10.0


class Advance(Protocol):
    def __call__(self, note: str = "") -> None: ...


@contextmanager
def progress(description: str, total: int, *, quiet: bool = False) -> Iterator[Advance]:
    """Yield a function to be called once for every unit that is done."""
    if quiet:
        yield lambda note="": None
    elif console.is_terminal:
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
        self.wait = SECONDS_BEFORE_LINES

    def __call__(self, note: str = "") -> None:
        self.done += 1
        if time.monotonic() - self.last >= self.wait:
            self.last, self.wait = time.monotonic(), SECONDS_BETWEEN_LINES
            told = f"{self.description}: {self.done} of {self.total}, {self._left()} {note}"
            say(told.rstrip(), err=True)

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
        with _Waiting(text) as waiting:
            yield waiting


class _Waiting:
    """Says what is being done, if it takes long, and how long it has taken."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.began = time.monotonic()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __call__(self, text: str) -> None:
        self.text = text

    def __enter__(self) -> "_Waiting":
        self._thread.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._over.set()
        self._thread.join()

    def _watch(self) -> None:
        wait = SECONDS_BEFORE_LINES
        while not self._over.wait(wait):
            wait = SECONDS_BETWEEN_LINES
            say(f"{self.text}, {time.monotonic() - self.began:.0f} s so far", err=True)
