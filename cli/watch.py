"""Progress of runs, for `c4 runs --watch` and for commands that start workers."""

import time
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

from rich.live import Live
from rich.text import Text

from c4.cli.output import console, say, say_json
from c4.cli.progress import SECONDS_BETWEEN_LINES
from c4.errors.text import counted, visible_json, visible_line

if TYPE_CHECKING:
    from c4.record.progress import Progress, ProgressWatch
    from c4.store.locations import Location

SECONDS_BETWEEN_LOOKS = 2.0
SECONDS_FOR_A_WORKER = 30.0
"""Time that --watch waits for the first worker, which may be loading a model."""


class RunsShown:
    """Display of the progress of runs: in place on a terminal, else as occasional lines.

    Args:
        as_json: print a line of JSON for every run and look.
        on_stdout: print to stdout, for commands whose result is the progress.
    """

    def __init__(self, *, as_json: bool, on_stdout: bool = False) -> None:
        self.as_json = as_json
        self.on_stdout = on_stdout
        live = not as_json and console.is_terminal
        self._live = Live(console=console, transient=True) if live else None
        self._last_line = float("-inf")
        self._next_look = 0.0
        self._counted = 0

    def __enter__(self) -> "RunsShown":
        if self._live:
            self._live.start()
        return self

    def __exit__(self, *exc: object) -> None:
        if self._live:
            self._live.stop()

    def count(self, watches: "Sequence[ProgressWatch]") -> int:
        """Return the number of trajectories done or set aside; look again only at intervals."""
        now = time.monotonic()
        if now >= self._next_look:
            found = [watch.look() for watch in watches]
            self.show(found)
            self._counted = sum(one.done + len(one.aside) for one in found)
            took = time.monotonic() - now  # a large run takes long to list
            self._next_look = time.monotonic() + max(SECONDS_BETWEEN_LOOKS, 10 * took)
        return self._counted

    def show(self, found: "Sequence[Progress]") -> None:
        if self._live:
            self._live.update(Text("\n".join(visible_line(progress_line(one)) for one in found)))
        elif self.as_json or time.monotonic() - self._last_line >= SECONDS_BETWEEN_LINES:
            self._last_line = time.monotonic()
            for one in found:
                line = visible_json(asdict(one)) if self.as_json else progress_line(one)
                say(visible_line(line), err=not self.on_stdout)


def watch_runs(root: "Location", *, as_json: bool) -> None:
    """Wait for the first worker, then show the progress of runs until no worker is left."""
    from c4.record.progress import ProgressWatch
    from c4.store.runs import find_runs

    watches: dict[Location, ProgressWatch] = {}
    began, seen, told = time.monotonic(), False, False
    with RunsShown(as_json=as_json, on_stdout=True) as shown:
        while True:
            for folder in find_runs(root):
                watches.setdefault(folder, ProgressWatch(folder))
            busy = [one for one in (watch.look() for watch in watches.values()) if one.workers]
            if busy:
                shown.show(busy)
            elif seen or (watches and time.monotonic() - began > SECONDS_FOR_A_WORKER):
                break
            elif not told:
                runs = f"nobody works on the {counted(len(watches), 'run')} below {root}; waiting"
                wait = f"{runs} {SECONDS_FOR_A_WORKER:.0f} s for a worker"
                none = f"no run below {root} yet; waiting for one (Ctrl-C ends this)"
                say(wait if watches else none, err=True)
                told = True
            seen = seen or bool(busy)
            time.sleep(SECONDS_BETWEEN_LOOKS)
    if as_json:
        say_json({"runs": len(watches), "workers": 0})
    else:
        say("nobody works on these runs any more" if seen else f"nobody works on runs below {root}")


def progress_line(progress: "Progress") -> str:
    """Return a run's progress as one line."""
    where = "/".join(progress.folder.parts[-3:])
    workers = counted(progress.workers, "worker")
    if not progress.workers:  # a finished run needs no worker
        workers = "no worker" if progress.left else "done"
    parts = [f"{where}: {progress.done} of {progress.wanted}", workers]
    if progress.per_minute:
        parts.append(f"{progress.per_minute:.1f} a minute")
    if progress.eta_seconds:
        parts.append(f"{progress.eta_seconds / 60:.0f} min left")
    if progress.failures:
        last = list(progress.failures.values())[-1]
        parts.append(f"{len(progress.failures)} died, the last: {last}")
    if progress.aside:
        parts.append(f"{len(progress.aside)} set aside")
    return ", ".join(parts)
