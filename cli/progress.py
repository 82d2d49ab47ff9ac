"""Progress on stderr: a bar on a terminal, and an occasional line elsewhere."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta

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
"""Time before the first line; shorter waits print nothing."""
SECONDS_BETWEEN_LINES = 10.0


@contextmanager
def progress(description: str, total: int, *, quiet: bool = False) -> Iterator[Callable[..., None]]:
    """Yield a function to call after every finished unit, with an optional note."""
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
        yield _lines(description, total)


def _lines(description: str, total: int) -> Callable[..., None]:
    """Return a function that occasionally prints the number of finished units and the time left."""
    began = last = time.monotonic()
    done, wait = 0, SECONDS_BEFORE_LINES

    def advance(note: str = "") -> None:
        nonlocal done, last, wait
        done += 1
        now = time.monotonic()
        if now - last >= wait:
            last, wait = now, SECONDS_BETWEEN_LINES
            left = timedelta(seconds=round(max(0.0, (now - began) / done * (total - done))))
            say(f"{description}: {done} of {total}, eta {left} {note}".rstrip(), err=True)

    return advance


@contextmanager
def status(text: str) -> Iterator[Callable[[str], None]]:
    """Yield a function that shows the current activity, beside a spinner or as lines."""
    if console.is_terminal:
        with console.status(Text(visible_line(text))) as spinner:
            yield lambda text: spinner.update(Text(visible_line(text)))
        return
    notes, over, began = [text], threading.Event(), time.monotonic()

    def watch() -> None:
        wait = SECONDS_BEFORE_LINES
        while not over.wait(wait):
            wait = SECONDS_BETWEEN_LINES
            say(f"{notes[-1]}, {time.monotonic() - began:.0f} s so far", err=True)

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield notes.append
    finally:
        over.set()
        thread.join()
