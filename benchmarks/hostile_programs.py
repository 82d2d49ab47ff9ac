"""Run every hostile program in the sandbox, and every reference solution; count what went wrong.

    python benchmarks/hostile_programs.py [--data ../shared/data] [--rows tests/data/rows]

The programs are those of tests/tasks/hostile, the slow ones included. An *escape* answered right,
which only a program that got out can, or touched something outside; a *forged pass* passed tests
that it should fail; a *survivor* lived on after its run; *blamed* is a program of its own doing
that ended as a failure of the machine. The controls show that the attempts are sound. Exits with 1
if anything is not as it should be.
"""

import argparse
import ctypes
import json
import os
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

from c4.tasks import TASKS, Grade, grade
from c4.tasks.sandbox.run import RunEnd, require_isolation

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests" / "tasks"))

from hostile import (  # noqa: E402 - found beside the tests
    HOSTILE,
    Control,
    Hostile,
    Kind,
    World,
    blames_without_filter,
    outside_world,
    passes_in_one_process,
    passes_without_wall,
    run_hostile,
    survivors,
)

PR_SET_CHILD_SUBREAPER = 36
FINDINGS = ("escapes", "forged passes", "survivors", "blamed", "other ends")
CODE = ("humaneval", "mbpp")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=ROOT.parent / "shared" / "data")
    parser.add_argument("--rows", type=Path, default=ROOT / "tests" / "data" / "rows")
    arguments = parser.parse_args()
    require_isolation()
    # Whoever leaves the sandbox would become a child of this process, and be seen.
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    os.environ["C4_TEST_SECRET"] = "secret"
    wrong = run_all() + run_controls()
    for folder in (arguments.rows, arguments.data):
        wrong += run_references(folder)
    return 1 if wrong else 0


def run_all() -> int:
    """Every program once; the number of findings."""
    start, found, programs = time.perf_counter(), Counter[str](), Counter[Kind]()
    with outside_world() as world:
        for hostile in HOSTILE:
            programs[hostile.kind] += 1
            for finding in findings(hostile, world):
                found[finding.partition(":")[0]] += 1
                print(f"  {hostile.kind}: {hostile.name}: {finding}")
    for kind in Kind:
        print(f"{programs[kind]:4d} programs: {kind}")
    counts = ", ".join(f"{found[name]} {name}" for name in FINDINGS)
    seconds = time.perf_counter() - start
    print(f"{len(HOSTILE)} hostile programs: {counts}; {seconds:.0f} s")
    return found.total()


def findings(hostile: Hostile, world: World) -> Iterator[str]:
    """What one program managed to do."""
    outcome = run_hostile(hostile.in_world(world.values))
    told = f"{outcome.verdict}, {outcome.detail}"
    if outcome.verdict is RunEnd.PASSED and RunEnd.PASSED not in hostile.ends:
        yield f"escapes: {told}" if hostile.kind is Kind.ESCAPE else f"forged passes: {told}"
    elif outcome.verdict is RunEnd.MACHINE:
        yield f"blamed: {told}"
    elif outcome.verdict not in hostile.ends:
        yield f"other ends: {told}"
    for touched in world.touched():
        yield f"escapes: {touched}"
    for pid in {*survivors(os.getpid()), *children()}:
        yield f"survivors: process {pid}"


def children() -> Iterator[int]:
    """Processes whose parent this one is."""
    for path in Path("/proc/self/task").glob("*/children"):
        yield from map(int, path.read_text().split())


def run_controls() -> int:
    """Whether honest programs pass, and whether the attempts would work elsewhere."""
    tests = {(h.preamble, h.tests, h.reference): h for h in HOSTILE}.values()
    honest = [replace(hostile, program=hostile.reference) for hostile in tests]
    fooled = [hostile for hostile in HOSTILE if hostile.control is Control.ONE_PROCESS]
    walled = [hostile for hostile in HOSTILE if hostile.control is Control.NO_WALL]
    unfiltered = [hostile for hostile in HOSTILE if hostile.control is Control.NO_FILTER]
    failed = count("honest programs pass the same tests", honest, passes)
    failed += count("forgeries fool a grader of one process", fooled, passes_in_one_process)
    failed += count("escapes succeed without a wall", walled, gets_out)
    what = "programs pass for a failure of the machine without their filter"
    return failed + count(what, unfiltered, blames_without_filter)


def passes(hostile: Hostile) -> bool:
    return run_hostile(hostile).verdict is RunEnd.PASSED


def gets_out(hostile: Hostile) -> bool:
    with outside_world() as world:
        return passes_without_wall(hostile.in_world(world.values))


def count(what: str, programs: Sequence[Hostile], holds: Callable[[Hostile], bool]) -> int:
    """Say of how many programs something holds; the number of the others."""
    others = [hostile.name for hostile in programs if not holds(hostile)]
    print(f"control: {len(programs) - len(others)} of {len(programs)} {what}", *others, sep="\n  ")
    return len(others)


def run_references(folder: Path) -> int:
    """Grade the reference solutions of a folder's rows; the number that do not pass."""
    failed = 0
    for name in CODE:
        path = folder / f"{name}.jsonl"
        if not path.exists():
            print(f"no {path}")
            continue
        rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        start = time.perf_counter()
        with ThreadPoolExecutor(2) as pool:
            grades = list(pool.map(lambda row, name=name: grade_reference(name, row), rows))
        others = [row["task_id"] for row, given in zip(rows, grades, strict=True) if not given]
        failed += len(others)
        seconds = time.perf_counter() - start
        passed = len(rows) - len(others)
        print(f"{passed} of {len(rows)} reference solutions of {path} pass; {seconds:.0f} s")
    return failed


def grade_reference(name: str, row: dict[str, object]) -> bool:
    example = TASKS[name].read(row)
    assert example is not None
    given: Grade = grade(TASKS[name], example, example.target)
    return given.correct is True


if __name__ == "__main__":
    sys.exit(main())
