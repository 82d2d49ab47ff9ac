"""Every byte of a small run of each kind, flipped once.

    python benchmarks/flip_bytes.py [--every 1] [--seed 0]

A manifest, a tokenizer, rows, cells, a pending trajectory, grades, cached signals, timings and a
calibration. One byte at a time is changed to another one, and everything that reads the file reads
it: it must be named in an error, or give the numbers that it gave before. A check must name it too,
or find it without effect. Prints counts, and ends with 1 if a flip was silent or a traceback.
"""

import argparse
import random
import sys
import tempfile
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from small_jobs import (
    OTHER_READING,
    add_grades,
    choose_setting,
    in_a_child,
    model,
    nobody,
    recording_plan,
    start_recording,
    time_methods,
)

from c4.errors import C4Error
from c4.gates.calibration_files import check_calibration, load_calibration
from c4.gates.run_signals import load_signals
from c4.store.check import State, check_run, check_timings
from c4.store.runs import Run, find_runs, open_run
from c4.store.timings import read_timings
from c4.store.writer import RunWriter

COUNTS = ("flips", "named", "without effect", "silent", "tracebacks", "false sound")
WRONG = COUNTS[3:]


def make_everything(root: Path) -> None:
    """A file of every kind; the last trajectory is left pending."""
    seal = RunWriter.seal_part
    RunWriter.seal_part = lambda self, part, claim: len(part) > 1 and seal(self, part, claim)  # type: ignore
    with start_recording(recording_plan(root), model()) as recording:
        list(recording)
    choose_setting(root)
    add_grades(root, nobody)
    time_methods(root)


def the_run(root: Path) -> Run:
    (folder,) = find_runs(root)
    return open_run(folder, OTHER_READING)


def cell_numbers(root: Path) -> int:
    return zlib.crc32(repr([(i, cells) for i, cells in the_run(root).cells()]).encode())


def row_numbers(root: Path) -> str:
    run = the_run(root)
    return repr((run.manifest.identity, run.indices, list(run.rows())))


def signal_numbers(root: Path) -> str:
    return repr([(s.trajectory, s.signals, s.candidates) for s in load_signals(the_run(root))])


READERS: dict[str, Callable[[Path], Any]] = {
    "manifest.json": row_numbers,
    "tokenizer.json": lambda root: the_run(root).text(list(range(100))),
    "rows": row_numbers,
    "cells": cell_numbers,
    "pending": lambda root: (row_numbers(root), cell_numbers(root)),
    "grades": row_numbers,
    "signals": signal_numbers,
    "bench": lambda root: read_timings(root).to_pylist(),
    "calibration.json": lambda root: load_calibration(root / "calibration.json"),
}
"""What is read of each file, by its kind."""


def kinds(root: Path) -> Iterator[tuple[str, Path]]:
    """A file of every kind."""
    (folder,) = find_runs(root)
    for name in ("manifest.json", "tokenizer.json"):
        yield name, folder / name
    for name in ("rows", "cells", "pending", "grades", "signals"):
        yield name, sorted((folder / name).iterdir())[0]
    yield "bench", next((root / "bench").rglob("*.parquet"))
    yield "calibration.json", root / "calibration.json"


def named_by_check(kind: str, path: Path, root: Path) -> bool:
    if kind == "calibration.json":
        return check_calibration(path) is not None
    found = check_timings(root) if kind == "bench" else check_run(path.parents[kind in FOLDERS])
    return any(f.state is State.PROBLEM and str(path) in f.what for f in found)


FOLDERS = {"rows", "cells", "pending", "grades", "signals"}


def flip_one(kind: str, path: Path, root: Path, flipped: bytes, expected: Any) -> str:
    """What became of one flip."""
    path.write_bytes(flipped)
    try:
        numbers = READERS[kind](root)
    except C4Error as error:
        return "named" if path.name in str(error) else "silent"
    except Exception as error:
        print(f"  {kind}: {error!r}", file=sys.stderr)
        return "tracebacks"
    return "without effect" if numbers == expected else "silent"


def flip_file(kind: str, path: Path, root: Path, every: int, rng: random.Random) -> Counter[str]:
    """Flip the bytes of one file, one after the other."""
    data, expected = path.read_bytes(), READERS[kind](root)
    found: Counter[str] = Counter()
    for at in range(rng.randrange(every), len(data), every):
        flipped = data[:at] + bytes([data[at] ^ rng.randrange(1, 256)]) + data[at + 1 :]
        what = flip_one(kind, path, root, flipped, expected)
        found.update(["flips", what])
        if found["flips"] % 10 == 0:
            path.write_bytes(flipped)  # cached signals were written anew
            sound = not named_by_check(kind, path, root)
            found["false sound"] += sound and (what != "without effect" or kind == "signals")
    path.write_bytes(data)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--every", type=int, default=1, help="Flip every n-th byte.")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    rng = random.Random(options.seed)
    total: Counter[str] = Counter()
    model()
    with tempfile.TemporaryDirectory() as scratch:
        root = Path(scratch)
        made = in_a_child(lambda _: make_everything(root))
        if made.error:
            sys.exit(made.error + made.traceback)
        for kind, path in kinds(root):
            found = flip_file(kind, path, root, options.every, rng)
            print(f"{kind:16}", ", ".join(f"{found[name]} {name}" for name in COUNTS), flush=True)
            total += found
    print("all:", ", ".join(f"{total[name]} {name}" for name in COUNTS))
    sys.exit(any(total[name] for name in WRONG))


if __name__ == "__main__":
    main()
