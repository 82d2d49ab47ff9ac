"""Timings on disk: one file for each call of the timing protocol.

A file's name holds the time of the call and the CRC-32 of its bytes. Times in names always
increase: if the clock is behind the newest file, the name takes the instant after that file's.
"""

import json
import re
import zlib
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from c4.errors import RunError
from c4.store.columns import check_columns, table_schema
from c4.store.locations import Location, parse_location
from c4.store.manifest import BENCH_FOLDER, task_folder, validate_identity
from c4.store.parts import UNREADABLE, brief_reason
from c4.store.runs import is_kept_apart
from c4.store.storage import (
    find_folders,
    list_files,
    list_folders,
    put_file,
    read_file,
    remove_leftovers,
)

TIMING = re.compile(r"([0-9]{8})T([0-9]{12})Z\.[0-9a-f]{8}\.parquet")
"""The name of a file of timings."""
BENCH = table_schema(
    (
        *("method", "settings", "identity", "length", "budget", "block_length", "n", "passes"),
        *("warmups", "device", "threads", "mean_seconds", "cv", "tps", "tps_before_end"),
        *("tokens_per_forward", "mean_steps", "speedup", "step_ratio"),
    ),
    nullable=["speedup", "step_ratio"],
)
"""One row per method of a timed call."""
TIMINGS = pa.schema(
    [*(pa.field(name, pa.string(), nullable=False) for name in ("model", "task")), *BENCH]
)


REPEATED = ("method", "identity", "n", "passes", "warmups", "device", "threads")
"""Columns, besides model and task, whose equality makes a timing a repetition of another."""


def timings_folder(root: Location, model: str, task: str) -> Location:
    """Return the folder for the timings of a model and a task."""
    return task_folder(root / BENCH_FOLDER, model, task)


def write_timings(root: Location, model: str, task: str, table: pa.Table) -> Location:
    """Store a call's table below the folder of all runs, under the current time."""
    folder = timings_folder(root, model, task)
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, compression="zstd")
    data = bytes(sink.getvalue())
    path = folder / f"{_next_time(folder)}.{zlib.crc32(data):08x}.parquet"
    remove_leftovers(folder, lambda name: TIMING.fullmatch(name) is not None)
    put_file(path, data)
    return path


def _next_time(folder: Location) -> str:
    """Return the current time, or the instant after the newest file if that is later."""
    names = (TIMING.fullmatch(path.name) for path in list_files(folder))
    newest = max((int(match[1] + match[2]) for match in names if match), default=0)
    digits = f"{max(int(f'{datetime.now(UTC):%Y%m%d%H%M%S%f}'), newest + 1):020d}"
    return f"{digits[:8]}T{digits[8:]}Z"


def read_timings(root: str | Location) -> pa.Table:
    """Read every timing below a root, oldest first, and of repetitions only the newest.

    A repetition has the same identity, including weights and shape, and the same protocol.
    """
    files = (path for folder in timing_folders(root) for path in list_files(folder))
    calls = (path for path in files if TIMING.fullmatch(path.name))
    newest: dict[tuple[Any, ...], dict[str, Any]] = {}
    for path in sorted(calls, key=lambda path: path.name):
        model, task = _place(path)
        for row in read_call(path).to_pylist():
            key = (model, task, *(row[name] for name in REPEATED))
            newest.pop(key, None)
            newest[key] = {"model": model, "task": task, **row}
    return pa.Table.from_pylist(list(newest.values()), schema=TIMINGS)


def timing_folders(root: str | Location) -> list[Location]:
    """List the folders of timings below a root: one for each model and task."""
    benches = (
        f for f in find_folders(parse_location(root), is_kept_apart) if f.name == BENCH_FOLDER
    )
    models = (f for bench in benches for f in list_folders(bench) if f.name.startswith("model="))
    return [f for model in models for f in list_folders(model) if f.name.startswith("task=")]


def read_call(path: Location) -> pa.Table:
    """Read the table of one call; errors name its file."""
    try:
        data = read_file(path)
    except FileNotFoundError:
        raise RunError(f"{path}: gone while it was being read") from None
    if path.suffixes[-2:-1] != [f".{zlib.crc32(data):08x}"]:
        raise RunError(
            f"{path}: damaged ({len(data)} bytes that do not match the checksum in the name); "
            "delete it, and time again with: c4 bench"
        )
    try:
        table = pq.ParquetFile(pa.BufferReader(data)).read()
        check_columns(table, BENCH)
        for identity in map(json.loads, table.column("identity").to_pylist()):
            validate_identity(identity)
            timed = identity["model"], identity["task"]
            if timed != _place(path):
                raise RunError(
                    f"{path}: timings of {timed[0]} on {timed[1]}, which belong in "
                    f"{BENCH_FOLDER}/model={timed[0]}/task={timed[1]}; move the file there"
                )
    except UNREADABLE as error:
        raise RunError(
            f"{path}: cannot be read ({brief_reason(error)}); delete it, and time again with: "
            "c4 bench"
        ) from error
    return table


def _place(path: Location) -> tuple[str, str]:
    """Return the model and the task in the path of a file of timings."""
    model, task = (part.partition("=")[2] for part in path.parts[-3:-1])
    return model, task
