"""A long life in rounds: record, kill, resume, grade, replay, calibrate, with readers beside it.

    python benchmarks/soak.py [--minutes 120] [--seed 0]

Each round does the five small jobs in one folder. Each is killed at a random instant up to twice
and then done again, while this process reads the folder over and over as a viewer would: rows,
cells, replayed exits, timings. Readers must never fail and never see a trajectory that was there
before go missing. After each round everything is compared with an undisturbed life, byte by byte.
Prints counts, and what the reading process holds in memory and in file handles after the first
round and at the end. It ends with 1 if any count should be zero and is not.
"""

import argparse
import gc
import os
import random
import sys
import tempfile
import time
from collections import Counter
from multiprocessing import get_context
from pathlib import Path

from small_jobs import (
    JOBS,
    Job,
    fresh_copy,
    in_a_child,
    leftovers,
    model,
    recording_plan,
    snapshot,
    unsound,
)

from c4.errors import C4Error
from c4.gates.registry import make_gate
from c4.replay.decisions import replay
from c4.store.runs import find_runs, open_run
from c4.store.timings import read_timings

FAULTS = ("lost", "failed reads", "vanished", "unsound", "other bytes", "left over", "errors")
LONGEST = 0.7
"""Seconds within which a job is killed; an undisturbed one takes less."""


def one_life(root: Path, rng: random.Random | None, found: Counter[str]) -> None:
    """Do every job in order; with a generator, kill each of them now and then."""
    for job in in_one_folder():
        for _ in range(rng.randrange(3) if rng else 0):
            ended = in_a_child(lambda report, job=job: job.work(root, report),
                               kill_after=rng.uniform(0, LONGEST))  # fmt: skip
            found["kills"] += ended.killed
            found["lost"] += len(ended.reported - job.finished(root)) if ended.reported else 0
        done = in_a_child(lambda report, job=job: job.work(root, report))
        found["errors"] += bool(done.error)
        if done.error:
            print(f"  {job.name}: {done.error}", file=sys.stderr)
        found["jobs"] += 1


def in_one_folder() -> list[Job]:
    """The jobs in an order in which each finds what it needs."""
    by_name = {job.name: job for job in JOBS}
    return [by_name[name] for name in ("record", "run", "grade", "calibrate", "bench")]


def read_on(root: str, stop, answers) -> None:
    """Read a folder until told to stop; says how often, what failed, and what went missing."""
    found: Counter[str] = Counter()
    while not stop.is_set():
        seen: dict[Path, set[int]] = {}
        try:
            for folder in find_runs(root):
                look(folder, seen, found)
            read_timings(root)
        except (C4Error, OSError) as error:
            found["failed reads"] += 1
            print(f"  reading: {error}", file=sys.stderr)
        found["reads"] += 1
    gc.collect()
    answers.put((found, handles(), memory()))


def look(folder: Path, seen: dict[Path, set[int]], found: Counter[str]) -> None:
    """Read all of a run, twice: what was there must still be."""
    for _ in range(2):
        run = open_run(folder)
        there = {row.trajectory for row in run.rows()}
        found["vanished"] += len(seen.get(folder, set()) - there)
        seen[folder] = there
        if run.has_cells and len(run):
            for _ in replay(run, {"cvee": make_gate("cvee")}):
                pass


def handles() -> int:
    return len(os.listdir("/proc/self/fd"))


def memory() -> float:
    """Megabytes that this process holds."""
    lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmRSS"))


def one_round(scratch: Path, undisturbed: Path, rng: random.Random) -> Counter[str]:
    """A disturbed life, read by another process all the while, and how it compares."""
    found: Counter[str] = Counter()
    root = scratch / "work"
    fresh_copy(scratch / "empty", root)
    context = get_context("fork")
    stop, answers = context.Event(), context.Queue()
    reader = context.Process(target=read_on, args=(str(root), stop, answers))
    reader.start()
    one_life(root, rng, found)
    stop.set()
    seen, _, _ = answers.get()
    reader.join()
    found += seen
    found["lost"] += len(recording_numbers(undisturbed) - recording_numbers(root))
    found["unsound"] += len(unsound(root))
    found["other bytes"] += kept(root) != kept(undisturbed)
    found["left over"] += len(leftovers(root))
    return found


def kept(root: Path) -> dict[str, bytes]:
    """Every file but cached signals, which depend on when a reader came by."""
    return {name: data for name, data in snapshot(root).items() if "/signals/" not in name}


def recording_numbers(root: Path) -> set[int]:
    return set(open_run(recording_plan(root).folder).indices)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=120.0)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    model()
    rng, total, rounds = random.Random(options.seed), Counter(), 0
    end = time.monotonic() + 60 * options.minutes
    with tempfile.TemporaryDirectory() as folder:
        scratch = Path(folder)
        (scratch / "empty").mkdir()
        undisturbed = fresh_copy(scratch / "empty", scratch / "undisturbed")
        one_life(undisturbed, None, Counter())
        while rounds == 0 or time.monotonic() < end:
            total += one_round(scratch, undisturbed, rng)
            gc.collect()
            if rounds == 0:
                held = handles(), memory()
            rounds += 1
            if rounds % 10 == 0:
                print(f"{rounds} rounds, {total['kills']} kills", file=sys.stderr, flush=True)
        now = handles(), memory()
    print(f"{rounds} rounds: {total['jobs']} jobs, {total['kills']} kills, {total['reads']} reads")
    print(", ".join(f"{total[fault]} {fault}" for fault in FAULTS))
    print(f"file handles {held[0]} -> {now[0]}, memory {held[1]:.0f} -> {now[1]:.0f} MB")
    sys.exit(any(total[fault] for fault in FAULTS) or now[0] > held[0])


if __name__ == "__main__":
    main()
