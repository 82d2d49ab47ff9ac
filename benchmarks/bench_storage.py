"""What reading from an object store costs: bytes, requests, memory; and claims on one.

    python benchmarks/bench_storage.py
    python benchmarks/bench_storage.py --many 1000    # a smaller run to compare with

An S3 server is started on loopback. A recording of the embedded model is copied to as many
trajectories as are wanted, through the store, into a folder and into a bucket. Printed are

- the bytes that `c4 replay` fetches from the bucket, over those that are stored;
- peak memory of a process that reads every cell, replays, or prints a report, for few and for many
  trajectories, and the ratio;
- how many claims 64 claimants make in a second, and how many were given twice.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter as Count
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pyarrow as pa

from c4.store.cells import cells_to_table
from c4.store.locations import Location, parse_location
from c4.store.manifest import MANIFEST, TOKENIZER
from c4.store.parts import CELLS_KEY, SHAPES_KEY, list_parts, write_part
from c4.store.rows import rows_to_table
from c4.store.runs import Run, find_runs, open_run
from c4.store.storage import make_once, owner_of, put_file, read_file, size_of
from c4.store.writer import plan_parts

sys.path.append(str(Path(__file__).parents[1]))
from tests.s3_server import Counter, environment, make_bucket, serve_s3

FEW, MANY, RECORDED = 100, 10_000, 20
BYTES_LIMIT, GROWTH_LIMIT = 1.1, 1.25
"""Bytes fetched over bytes needed; peak memory of MANY trajectories over that of FEW."""
CLAIMANTS, CLAIMED = 64, 64
JOBS = {
    "reading every cell": "for run in find_recordings(root):\n    for _ in run: pass",
    "c4 replay": "c4('replay', '--runs', root, '--gate', 'cvee')",
    "c4 report main": "c4('report', 'main', '--runs', root)",
}
"""What is measured, as programs."""
PROGRAM = """
import contextlib, io, os, resource, sys
from typer.main import get_command
from c4.cli.app import app
from c4.store.runs import find_recordings
import c4.analysis, c4.analysis.tables, c4.replay.decisions

def c4(*words):
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        get_command(app).main(words, standalone_mode=False)

root = sys.argv[1]
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
{job}
print(before, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, flush=True)
os._exit(0)  # before Arrow's threads are asked to end, which may abort the process
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--few", type=int, default=FEW)
    parser.add_argument("--many", type=int, default=MANY)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch, server(Path(scratch)) as (bucket, counter):
        source = record(Path(scratch) / "recorded")
        roots = [Path(scratch) / "runs", bucket / "runs"]
        for n in (given.few, given.many):
            make_copies(source, roots[0] / str(n), n)
            upload(roots[0] / str(n), roots[1] / str(n))
        failures = [
            *show_bytes(roots[0] / str(given.few), roots[1] / str(given.few), counter),
            *show_bytes(roots[0] / str(given.many), roots[1] / str(given.many), counter),
        ]
        os.environ["AWS_ENDPOINT_URL"] = f"http://{counter.upstream}"  # nothing more to count
        failures += [
            *show_memory(roots, given.few, given.many),
            *show_claims([Path(scratch) / "claims", bucket / "claims"]),
        ]
    sys.exit("\n".join(failures) or None)


@contextmanager
def server(scratch: Path) -> Iterator[tuple[Location, Counter]]:
    """A bucket, reached through a counter."""
    with serve_s3() as endpoint, Counter(endpoint).running() as counter:
        os.environ |= environment(counter.address)
        os.environ["XDG_CACHE_HOME"] = str(scratch / "cache")
        yield parse_location(make_bucket(endpoint)), counter


def record(out: Path) -> Run:
    """A recording of the embedded model."""
    words = ["record", "--task", "mmlu", "--n", str(RECORDED), "--out", str(out)]
    subprocess.run([sys.executable, "-m", "c4.cli", *words], check=True, stdout=subprocess.DEVNULL)
    return open_run(find_runs(out)[0])


def make_copies(source: Run, root: Path, n: int) -> None:
    """A run of n trajectories, each of them one of the source's."""
    folder = root.joinpath(*source.folder.parts[-3:])
    for name in (MANIFEST, TOKENIZER):
        put_file(folder / name, read_file(source.folder / name))
    recorded = list(source)
    first = recorded[0].row.trajectory
    for numbers in plan_parts(range(first, first + n), source.shape):
        chosen = [recorded[number % len(recorded)] for number in numbers]
        tables = [
            cells_to_table(number, one.cells) for number, one in zip(numbers, chosen, strict=True)
        ]
        shapes = [(number, *one.cells.shape) for number, one in zip(numbers, chosen, strict=True)]
        cells = write_part(
            folder / "cells",
            pa.concat_tables(tables),
            numbers,
            source.manifest,
            {SHAPES_KEY: json.dumps(shapes).encode()},
        )
        rows = [
            replace(one.row, trajectory=number, source_row=number)
            for number, one in zip(numbers, chosen, strict=True)
        ]
        named = {CELLS_KEY: cells.path.name.encode()}
        table = rows_to_table(rows)
        write_part(folder / "rows", table, numbers, source.manifest, named)


def upload(here: Path, there: Location) -> None:
    for path in sorted(here.rglob("*")):
        if path.is_file():
            put_file(there.joinpath(*path.relative_to(here).parts), path.read_bytes())


def show_bytes(here: Path, there: Location, counter: Counter) -> list[str]:
    """Print what a replay fetches, over what is stored."""
    (folder,) = find_runs(here)
    stored = stored_bytes(folder)
    for cached in (False, True):
        counter.reset()
        peak_memory("c4 replay", there)
        ratio = counter.bytes_given / stored
        print(
            f"c4 replay of {here.name} over S3{', signals cached' if cached else ''}: "
            f"{counter.bytes_given:,} bytes in {len(counter.requests)} requests, of "
            f"{stored:,} stored: {ratio:.3f}x",
            flush=True,
        )
        if not cached and ratio > BYTES_LIMIT:
            return [f"c4 replay fetches {ratio:.3f}x the bytes that are stored"]
    return []


def stored_bytes(folder: Location) -> int:
    """The bytes of the manifest, the tokenizer and all parts of rows and cells."""
    parts = [part.path for kind in ("rows", "cells") for part in list_parts(folder / kind)]
    return sum(map(size_of, [folder / MANIFEST, folder / TOKENIZER, *parts]))


def show_memory(roots: Sequence[Location], few: int, many: int) -> list[str]:
    """Print peak memory over few and over many trajectories."""
    failures = []
    for job in JOBS:
        for root, kind in zip(roots, ("folder", "S3"), strict=True):
            began = time.perf_counter()
            (_, low), (imports, high) = (peak_memory(job, root / str(n)) for n in (few, many))
            seconds = time.perf_counter() - began
            print(
                f"{job}, {kind}: {low:.0f} MB for {few:,} trajectories, {high:.0f} MB for "
                f"{many:,}: {high / low:.2f}x (imports alone {imports:.0f} MB; {seconds:.0f} s)",
                flush=True,
            )
            if high / low > GROWTH_LIMIT:
                failures.append(f"{job} on {kind}: memory grows {high / low:.2f}x")
    return failures


def peak_memory(job: str, root: Location) -> tuple[float, float]:
    """Megabytes of a process before it did a job, and at most; what it cached before is used."""
    program = PROGRAM.format(job=JOBS[job])
    done = subprocess.run(
        [sys.executable, "-c", program, str(root)], check=True, capture_output=True, text=True
    )
    before, peak = map(int, done.stdout.split())
    return before / 1024, peak / 1024


def show_claims(roots: Sequence[Location]) -> list[str]:
    """Print how fast many claimants take names that each can have only once."""
    failures = []
    for root, kind in zip(roots, ("folder", "S3"), strict=True):
        names = [root / f"{number:06d}.1" for number in range(CLAIMED)]

        def try_all(claimant: int, names: Sequence[Location] = names) -> list[Location]:
            ahead = [*names[claimant:], *names[:claimant]]
            return [name for name in ahead if make_once(name, b"claimant %d" % claimant)]

        began = time.perf_counter()
        with ThreadPoolExecutor(CLAIMANTS) as pool:
            taken = list(pool.map(try_all, range(CLAIMANTS)))
        seconds = time.perf_counter() - began
        given = Count(name for mine in taken for name in mine)
        twice = sum(count > 1 for count in given.values())
        wrong = sum(owner_of(n) != b"claimant %d" % i for i, mine in enumerate(taken) for n in mine)
        tried = CLAIMANTS * CLAIMED
        print(
            f"{CLAIMANTS} claimants, {kind}: {len(given)} of {CLAIMED} names taken in {tried:,} "
            f"attempts, {tried / seconds:,.0f} attempts a second; given twice: {twice}"
        )
        if twice or wrong or len(given) != CLAIMED:
            failures.append(f"claims on {kind}: {twice} given twice, {wrong} signed by others")
    return failures


if __name__ == "__main__":
    main()
