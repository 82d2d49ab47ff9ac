"""Processes killed while they write, at every file event and at random instants.

    python benchmarks/kill_matrix.py [--every 1] [--random 200] [--job record]

For a recording, a run of a method, grades, a calibration and timings: the process is killed with
SIGKILL before each thing it does to a file, and in the middle of each write; then once more, with
everything taken back that no fsync had made safe, as when the power fails; then at random
instants. After each, what it had said was safe must be there; the same job done again must
decode nothing that was safe, leave no half-written file, and leave the bytes that it leaves
undisturbed. Prints counts, and ends with 1 if any of them should be zero and is not.
"""

import argparse
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from small_jobs import (
    JOBS,
    Events,
    Job,
    Outcome,
    PowerCut,
    die,
    fresh_copy,
    in_a_child,
    leftovers,
    model,
    prepared,
    snapshot,
    unsound,
)

from c4.errors import C4Error

FAULTS = ("lost", "unreadable", "redone", "unsound", "other bytes", "left over", "tracebacks")
Disturb = Callable[[Path, Job], Outcome]


def look_after(job: Job, root: Path, disturbed: Outcome, after: Path) -> Counter[str]:
    """What is wrong with what a killed job left, now and after it was done again."""
    found: Counter[str] = Counter()
    before_again = finished(job, root, found)
    found["lost"] += len(disturbed.reported - before_again)
    found["unsound"] += len(unsound(root))
    again = in_a_child(lambda report: job.work(root, report))
    found["tracebacks"] += bool(again.error)
    found["redone"] += len(again.reported & before_again)
    found["lost"] += len(job.finished(after) - finished(job, root, found))
    found["other bytes"] += snapshot(root) != snapshot(after)
    found["left over"] += len(leftovers(root))
    if +found:
        print(f"  {job.name}: {dict(+found)} {again.error}", file=sys.stderr)
    return found


def finished(job: Job, root: Path, found: Counter[str]) -> set[int]:
    try:
        return job.finished(root)
    except C4Error as error:
        found["unreadable"] += 1
        print(f"  {job.name}: {error}", file=sys.stderr)
        return set()


def kill_at_events(
    job: Job, scratch: Path, every: int, killer: Callable[[Path, int], Events]
) -> Counter[str]:
    """Kill a job at every event, or at some of them, until it survives."""
    before, after = prepared(job, scratch)
    found: Counter[str] = Counter()
    event, survived = 0, False
    while not survived:
        event += every
        root = fresh_copy(before, scratch / "work")

        def work(report: Callable[[int], None], root: Path = root, event: int = event) -> None:
            killer(root, event).install()
            job.work(root, report)

        ended = in_a_child(work)
        survived = not ended.killed
        found["kills"] += ended.killed
        found += look_after(job, root, ended, after)
    return found


def kill_at_random(job: Job, scratch: Path, kills: int, rng: random.Random) -> Counter[str]:
    """Kill a job at instants that nobody chose."""
    before, after = prepared(job, scratch)
    start = time.monotonic()
    in_a_child(lambda report: job.work(fresh_copy(before, scratch / "work"), report))
    takes = time.monotonic() - start
    found: Counter[str] = Counter()
    while found["kills"] < kills:
        root = fresh_copy(before, scratch / "work")
        ended = in_a_child(
            lambda report, root=root: job.work(root, report), kill_after=rng.uniform(0, takes)
        )
        found["kills"] += ended.killed
        found += look_after(job, root, ended, after)
    return found


def killed(root: Path, at: int) -> Events:
    return Events(root, die, at)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--every", type=int, default=1, help="Kill at every n-th event.")
    parser.add_argument("--random", type=int, default=200, help="Kills at random instants.")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--job", choices=[job.name for job in JOBS], help="Only this one.")
    options = parser.parse_args()
    model()
    total: Counter[str] = Counter()
    rng = random.Random(options.seed)
    for job in (job for job in JOBS if options.job in (None, job.name)):
        for name, kill in (
            ("file events", lambda job, at: kill_at_events(job, at, options.every, killed)),
            ("power cuts", lambda job, at: kill_at_events(job, at, options.every, PowerCut)),
            ("instants", lambda job, at: kill_at_random(job, at, options.random // len(JOBS), rng)),
        ):
            with tempfile.TemporaryDirectory() as scratch:
                found = kill(job, Path(scratch))
            wrong = ", ".join(f"{found[fault]} {fault}" for fault in FAULTS)
            print(f"{job.name:10} killed at {found['kills']:4} {name}: {wrong}", flush=True)
            total += found
    print(f"{total['kills']} kills:", ", ".join(f"{total[fault]} {fault}" for fault in FAULTS))
    sys.exit(any(total[fault] for fault in FAULTS))


if __name__ == "__main__":
    main()
