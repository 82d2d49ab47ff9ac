"""Storage requests of `c4 record` into a new folder, for few and many trajectories.

    python benchmarks/bench_requests.py [--n 20 200 2000] [--workers 1]

Counted are list, read, put, head and delete requests, and the entries that lists give: on a folder
by the calls to the operating system, where a claim is a folder with a file in it, and on an S3
server on loopback by a proxy. Above `REAL` trajectories one decode of the embedded model stands for
all; everything else is as ever.

Of the requests, each trajectory needs its own write, and a claim that is made and given back. What
is left is shown per trajectory and per part.
"""

import argparse
import io
import os
import sys
import tempfile
import threading
from collections import Counter as Count
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from c4.record import recorder
from c4.record.plan import RunConfig, load_planned, plan_recording
from c4.record.recorder import start_recording
from c4.store.locations import Location, parse_location
from c4.store.parts import list_parts

sys.path.append(str(Path(__file__).parents[1]))
from tests.s3_server import Counter, environment, make_bucket, serve_s3

REAL = 20
"""Trajectories at most that the model decodes itself."""
KINDS = ("list", "read", "put", "head", "delete")
CALLS = {"mkdir": "put", "stat": "head", "unlink": "delete", "rmdir": "delete"}
"""Functions of `os`, and the request of an object store that each is like."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--n", type=int, nargs="+", default=[20, 200, 2000])
    parser.add_argument("--workers", type=int, default=1)
    given = parser.parse_args()
    print(f"{'':22}{''.join(f'{kind:>8}' for kind in KINDS)}{'entries':>9}  per trajectory")
    with tempfile.TemporaryDirectory() as scratch, serve_s3() as endpoint:
        for n in given.n:
            out = Path(scratch) / str(n)
            with counted_calls(out) as counts:
                parts = record(out, n, given.workers)
            show(f"folder, n={n:,}", counts, n, parts)
        with Counter(endpoint).running() as server:
            os.environ |= environment(server.address)
            root = parse_location(make_bucket(endpoint))
            for n in given.n:
                server.reset()
                parts = record(root / str(n), n, given.workers)
                counts = Count(map(kind_of, server.requests))
                counts["entries"] = server.entries_given
                show(f"S3, n={n:,}", counts, n, parts)


def record(out: Location, n: int, workers: int) -> int:
    """Record as `c4 record` does; gives the number of parts."""
    plan = plan_recording(RunConfig(task="mmlu", n=n, skip=0, out=out, device="cpu"))
    model = load_planned(plan)
    real, made = recorder.Recording._decode_claimed, []

    def decode(self: Any, sample: Any, predictor: Any) -> Any:
        if n <= REAL or not made:
            made.append(real(self, sample, predictor))
            return made[-1]
        numbers = {"trajectory": sample.index, "source_row": sample.source_row}
        numbers["prompt"] = sample.example.prompt
        if isinstance(made[0], tuple):
            row, cells = made[0]
            return replace(row, **numbers), cells
        return replace(made[0], row=replace(made[0].row, **numbers))

    def work() -> None:
        with start_recording(plan, model) as recording:
            for _ in recording:
                pass

    recorder.Recording._decode_claimed = decode  # type: ignore[method-assign]
    threads = [threading.Thread(target=work) for _ in range(workers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    recorder.Recording._decode_claimed = real  # type: ignore[method-assign]
    return len(list_parts(plan.folder / "rows"))


def kind_of(request: str) -> str:
    method, _, path = request.partition(" ")
    if method == "GET":
        return "list" if "list-type" in path else "read"
    return {"PUT": "put", "HEAD": "head"}.get(method, "delete")


@contextmanager
def counted_calls(root: Path) -> Iterator[Count[str]]:
    """Count what the operating system is asked about files below a folder."""
    counts: Count[str] = Count()
    real = {name: getattr(os, name) for name in (*CALLS, "open", "scandir", "rename")}
    real_open = io.open

    def below(path: Any) -> bool:
        return isinstance(path, str | os.PathLike) and str(path).startswith(str(root))

    def calling(name: str) -> Any:
        def call(path: Any, *args: Any, **options: Any) -> Any:
            counts[CALLS[name]] += below(path)
            return real[name](path, *args, **options)

        return call

    def os_open(path: Any, flags: int, *args: Any, **options: Any) -> int:
        is_flush = not flags & os.O_CREAT  # of a folder; files are read by `Path.open`
        counts["put"] += below(path) and not is_flush
        descriptor: int = real["open"](path, flags, *args, **options)
        return descriptor

    def file_open(file: Any, *args: Any, **options: Any) -> Any:
        counts["read"] += below(file)
        return real_open(file, *args, **options)

    def scandir(path: Any = ".") -> Any:
        counts["list"] += below(path)
        with real["scandir"](path) as entries:
            found = list(entries)
        counts["entries"] += len(found) * below(path)
        return Entries(found)

    patched = {name: calling(name) for name in CALLS} | {"open": os_open, "scandir": scandir}
    for name, function in patched.items():
        setattr(os, name, function)
    io.open = file_open  # what `Path.open` calls
    try:
        yield counts
    finally:
        io.open = real_open
        for name, function in real.items():
            setattr(os, name, function)


class Entries(list[Any]):
    """A list that can be used like what `os.scandir` gives."""

    def __enter__(self) -> "Entries":
        return self

    def __exit__(self, *exc: object) -> None:
        pass


def show(what: str, counts: Count[str], n: int, parts: int) -> None:
    asked = sum(counts[kind] for kind in KINDS if kind != "delete")
    numbers = "".join(f"{counts[kind]:8,}" for kind in KINDS) + f"{counts['entries']:9,}"
    # Its own write and its claim, which is a folder and a file in a folder of the machine.
    print(f"{what:22}{numbers}  {(asked - n) / n:.2f} beside its own write; {parts} parts")


if __name__ == "__main__":
    main()
