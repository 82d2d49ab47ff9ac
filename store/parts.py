"""Parts: Parquet files that say which trajectories they cover, what their bytes sum to, and whose
they are.

A part's name holds the trajectories it covers and the CRC-32 of its bytes; its metadata hold the
digest of the identity of the run it belongs to. Parts are never changed.
"""

import re
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from c4.errors import RunError
from c4.store.storage import list_files, put_file, read_file

PART = re.compile(r"(\d{6,})-(\d{6,})\.([0-9a-f]{8})\.parquet")
RUN_KEY = b"c4.run"
"""Under which a part names its run: the digest of the run's identity."""


@dataclass(frozen=True, order=True)
class Part:
    """A self-verifying file: which trajectories it covers and what its bytes must sum to."""

    first: int
    last: int
    path: Path
    checksum: int

    @property
    def trajectories(self) -> range:
        return range(self.first, self.last + 1)


def list_parts(folder: Path) -> list[Part]:
    """The parts in a folder, in order. Temporary files are not parts."""
    matches = ((path, PART.fullmatch(path.name)) for path in list_files(folder))
    return sorted(
        Part(int(match[1]), int(match[2]), path, int(match[3], 16))
        for path, match in matches
        if match
    )


def write_part(folder: Path, first: int, last: int, data: bytes) -> Path:
    """Write the bytes of a part under the name that vouches for them."""
    path = folder / f"{first:06d}-{last:06d}.{zlib.crc32(data):08x}.parquet"
    put_file(path, data)
    return path


def open_part(part: Part, run: str | None = None) -> pq.ParquetFile:
    """A part's Parquet file, read into memory and checked; or an error that names it.

    Args:
        run: digest of the run that the part must belong to; None takes any.
    """
    data = read_file(part.path)
    if zlib.crc32(data) != part.checksum:
        raise RunError(
            f"{part.path}: damaged ({len(data)} bytes that do not match the checksum in the "
            f"name); delete it and record again to decode trajectories {part.first} to "
            f"{part.last} anew"
        )
    file = pq.ParquetFile(pa.BufferReader(data))
    whose = (file.schema_arrow.metadata or {}).get(RUN_KEY, b"").decode()
    if run is not None and whose != run:
        raise RunError(
            f"{part.path}: belongs to another run ({whose or 'it names none'}, not {run}); move it "
            "back where it came from"
        )
    return file


def encode_table(
    table: pa.Table, run: str, metadata: Mapping[bytes, bytes] | None = None, **options: object
) -> bytes:
    """A table as the bytes of one Parquet file with one row group, marked as a run's own."""
    marked = table.replace_schema_metadata({RUN_KEY: run.encode(), **(metadata or {})})
    sink = pa.BufferOutputStream()
    pq.write_table(marked, sink, row_group_size=max(1, table.num_rows), **options)
    return bytes(sink.getvalue())
