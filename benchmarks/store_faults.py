"""A disk that fails, fills up or turns read-only, and memory that runs out, at every call.

    python benchmarks/store_faults.py [--every 1] [--job record]

For a recording, a run of a method, grades, a calibration and timings: each thing that the process
does to a file raises an error, once or from then on, and so does each table that is encoded. What
had been said to be safe must be there and right, a check must not find anything else sound, and the
same job done again must leave the bytes that it leaves undisturbed. Then a check itself is
disturbed: it must not call a run sound of which it could not read a file. Prints counts, and ends
with 1 if any of them should be zero and is not.
"""

import argparse
import errno
import os
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq
from kill_matrix import FAULTS, look_after
from small_jobs import JOBS, Events, Job, Outcome, fresh_copy, in_a_child, model, prepared, unsound

from c4.errors import C4Error

Raise = Callable[[str], None]


def disk_error(number: int) -> Raise:
    """An error that the system gives."""

    def strike(_: str) -> None:
        raise OSError(number, os.strerror(number))

    return strike


def no_memory(_: str) -> None:
    raise MemoryError


STRIKES: dict[str, Raise] = {
    "no space": disk_error(errno.ENOSPC),
    "input/output error": disk_error(errno.EIO),
    "read-only": disk_error(errno.EROFS),
    "out of memory": no_memory,
}


class LastingEvents(Events):
    """Strikes at one event and at all that follow."""

    def strike_if(self, event: str) -> None:
        if self.seen >= self.at:
            self.strike(event)


class Encodings(Events):
    """Strikes where a table is encoded, in whatever thread that is."""

    def install(self) -> None:
        real = pq.write_table

        def counted(*args: object, **options: object) -> None:
            self._count("encode")
            real(*args, **options)

        pq.write_table = counted


def disturb(job: Job, root: Path, events: Events) -> Outcome:
    def work(report: Callable[[int], None]) -> None:
        events.install()
        try:
            job.work(root, report)
        finally:
            if events.seen < events.at:
                report(-1)  # it was over before the strike

    return in_a_child(work)


def strike_everywhere(
    job: Job, folders: tuple[Path, Path, Path], kind: type[Events], strike: Raise, every: int
) -> Counter[str]:
    """Disturb a job at every event, or at some of them, until it is over before."""
    before, after, scratch = folders
    found: Counter[str] = Counter()
    at, over = 0, False
    while not over:
        at += every
        root = fresh_copy(before, scratch / "work")
        ended = disturb(job, root, kind(root, strike, at))
        over = -1 in ended.reported
        ended.reported.discard(-1)
        found["faults"] += not over
        if ended.traceback:
            found["tracebacks"] += 1
            print(ended.traceback, file=sys.stderr)
        found += look_after(job, root, ended, after)
    return found


def disturb_check(root: Path, every: int) -> Counter[str]:
    """Let each thing that a check reads fail: it must not say that all is sound."""
    found: Counter[str] = Counter()
    at, over = 0, False
    while not over:
        at += every

        def work(report: Callable[[int], None], at: int = at) -> None:
            events = Events(root, STRIKES["input/output error"], at)
            events.install()
            try:
                sound = not unsound(root)
            except C4Error:
                sound = False
            over = events.seen < at
            report(-1 if over else int(sound))

        ended = in_a_child(work)
        over = -1 in ended.reported
        found["faults"] += not over
        found["unsound"] += 1 in ended.reported
        found["tracebacks"] += bool(ended.error)
        if 1 in ended.reported or ended.error:
            print(f"  check, event {at}: called sound {ended.error}", file=sys.stderr)
    return found


def show(name: str, what: str, found: Counter[str]) -> None:
    wrong = ", ".join(f"{found[fault]} {fault}" for fault in FAULTS)
    print(f"{name:10} {what:28} {found['faults']:5} faults: {wrong}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--every", type=int, default=1, help="Strike at every n-th event.")
    parser.add_argument("--job", choices=[job.name for job in JOBS], help="Only this one.")
    options = parser.parse_args()
    model()
    total: Counter[str] = Counter()
    for job in (job for job in JOBS if options.job in (None, job.name)):
        with tempfile.TemporaryDirectory() as scratch:
            folders = (*prepared(job, Path(scratch)), Path(scratch))
            plans = [(what, Events, strike) for what, strike in STRIKES.items()]
            plans += [(f"{what}, lasting", LastingEvents, STRIKES[what]) for what in LASTING]
            plans += [("out of memory, encoding", Encodings, no_memory)]
            for what, kind, strike in plans:
                found = strike_everywhere(job, folders, kind, strike, options.every)
                show(job.name, what, found)
                total += found
            found = disturb_check(folders[1], options.every)
            show(job.name, "a check that cannot read", found)
            total += found
    show("all", "", total)
    sys.exit(any(total[fault] for fault in FAULTS))


LASTING = ("no space", "read-only")

if __name__ == "__main__":
    main()
