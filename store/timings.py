"""Timings on disk: one file for each call of the timing protocol.

A file's name holds the time of the call and the CRC-32 of its bytes.
"""

import zlib
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from c4.errors import RunError
from c4.store.manifest import task_folder
from c4.store.schema import BENCH
from c4.store.storage import put_file, read_file

TIMINGS = pa.schema(
    [*(pa.field(name, pa.string(), nullable=False) for name in ("model", "task")), *BENCH]
)


REPEATED = ("method", "identity", "n", "passes", "warmups", "device", "threads")
"""What is equal in two timings of the same thing."""


def timings_folder(root: Path, model: str, task: str) -> Path:
    """Where the timings of a model and a task are kept."""
    return task_folder(root / "bench", model, task)


def write_timings(root: Path, model: str, task: str, table: pa.Table) -> Path:
    """Keep a call's table below the folder of all runs, under the time it was made."""
    folder = timings_folder(root, model, task)
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, compression="zstd")
    data = bytes(sink.getvalue())
    path = folder / f"{datetime.now(UTC):%Y%m%dT%H%M%S%f}Z.{zlib.crc32(data):08x}.parquet"
    put_file(path, data)
    return path


def read_timings(root: str | Path) -> pa.Table:
    """Every timing below a root, oldest first; of repetitions only the newest.

    A repetition has the same identity, weights and shape included, and the same protocol.
    """
    newest: dict[tuple[Any, ...], dict[str, Any]] = {}
    for path in timing_files(root):
        model, task = (part.partition("=")[2] for part in path.parts[-3:-1])
        for row in read_call(path).to_pylist():
            key = (model, task, *(row[name] for name in REPEATED))
            newest.pop(key, None)
            newest[key] = {"model": model, "task": task, **row}
    return pa.Table.from_pylist(list(newest.values()), schema=TIMINGS)


def timing_files(root: str | Path) -> list[Path]:
    """The files of timings below a root, oldest first."""
    paths = Path(root).glob("**/bench/model=*/task=*/*.parquet")
    return sorted(paths, key=lambda path: path.name)


def read_call(path: Path) -> pa.Table:
    """The table of one call; or an error that names its file."""
    try:
        data = read_file(path)
    except OSError as error:
        raise RunError(f"{path}: cannot be read ({error})") from error
    if path.suffixes[-2:-1] != [f".{zlib.crc32(data):08x}"]:
        raise RunError(
            f"{path}: damaged ({len(data)} bytes that do not match the checksum in the name); "
            "delete it, and time again with: c4 bench"
        )
    table = pq.ParquetFile(pa.BufferReader(data)).read()
    if table.schema.names != BENCH.names:
        raise RunError(f"{path}: columns of another c4; delete it, and time again with: c4 bench")
    return table
