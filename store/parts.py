"""Parts: Parquet files that say what they are.

A part's name holds the trajectories it covers and the CRC-32 of its bytes. Its metadata hold all
that is known of the run it belongs to, so that a run can be put together again from its parts, and
no part is mistaken for another run's. Parts are never changed.
"""

import json
import re
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from c4.errors import RunError
from c4.store.columns import ColumnFile, PartFile, reserve_checksums, write_checksums
from c4.store.locations import Location
from c4.store.manifest import DATA_FOLDERS, Manifest, identity_digest
from c4.store.storage import is_remote, list_files, put_file, read_file

PART = re.compile(r"([0-9]{6,})-([0-9]{6,})\.([0-9a-f]{8})\.parquet")
RUN_KEY = b"c4.run"
"""Under which a part names its run: the digest of the run's identity."""
IDENTITY_KEY = b"c4.identity"
"""The identity itself, as JSON."""
TOKENIZER_KEY = b"c4.tokenizer"
"""The SHA-256 of the run's tokenizer.json."""
MADE_KEY = b"c4.made_with"
"""JSON: the devices and programs that made the part, each once."""
COVERS_KEY = b"c4.trajectories"
"""JSON: the first and the last trajectory in the part, and how many there are."""
KIND_KEY = b"c4.kind"
"""The folder that the part was written for."""
UNREADABLE = (
    pa.ArrowException,
    OSError,
    ValueError,
    TypeError,
    LookupError,
    AttributeError,
    OverflowError,
    RecursionError,
)
"""What readers raise at content that nobody can have meant."""
ADVICE = {
    "rows": "; delete it and, if there is one, cells/{range}.*.parquet, and give the command that "
    "recorded the run again",
    "cells": "; delete it and rows/{range}.*.parquet, and give the command that recorded the run "
    "again",
    "pending": "; delete it and give the command that recorded the run again",
    "grades": "; delete it and grade again with: c4 grade",
    "signals": "; delete it, and it is computed again",
}
"""What to do about a part that cannot be read, by its folder; rows and cells of the same
trajectories have the same range in their names."""
LONGEST_REASON = 300
"""Characters of what a library says about a file that cannot be read."""


@dataclass(frozen=True)
class Stamp:
    """What a part says of the run it belongs to."""

    identity: Mapping[str, Any]
    tokenizer_file_sha256: str
    made_with: Sequence[Mapping[str, Any]] = ()
    """The devices and programs it was made with, each once."""

    @classmethod
    def of(cls, manifest: Manifest) -> "Stamp":
        """The stamp of what a session makes."""
        return cls(manifest.identity, manifest.tokenizer_file_sha256, [manifest.made_with])

    @classmethod
    def read(cls, metadata: Mapping[bytes, bytes]) -> "Stamp":
        """The stamp that a part carries."""
        identity, made_with = (json.loads(metadata[key]) for key in (IDENTITY_KEY, MADE_KEY))
        stamp = cls(identity, metadata[TOKENIZER_KEY].decode(), made_with)
        if stamp.digest != metadata[RUN_KEY].decode():
            raise ValueError("its identity is not the one that it names")
        return stamp

    @property
    def digest(self) -> str:
        return identity_digest(self.identity)

    @property
    def metadata(self) -> dict[bytes, bytes]:
        return {
            RUN_KEY: self.digest.encode(),
            IDENTITY_KEY: json.dumps(self.identity, sort_keys=True).encode(),
            TOKENIZER_KEY: self.tokenizer_file_sha256.encode(),
            MADE_KEY: json.dumps(list(self.made_with), sort_keys=True).encode(),
        }


@dataclass(frozen=True, order=True)
class Part:
    """A self-verifying file: what its name says it covers and what its bytes must sum to."""

    first: int
    last: int
    path: Location
    checksum: int

    @property
    def trajectories(self) -> range:
        """What the name says. Nothing is sized by it before `open_part` has compared it."""
        return range(self.first, self.last + 1)


def list_parts(folder: Location) -> list[Part]:
    """The parts in a folder, in order. Files under other names are not parts."""
    return sorted(named_part(p) for p in list_files(folder) if PART.fullmatch(p.name))


def named_part(path: Location) -> Part:
    """The part of a name; ValueError where no part has such a name."""
    match = PART.fullmatch(path.name)
    if match is None:
        raise ValueError(f"{path.name} is no part")
    return Part(int(match[1]), int(match[2]), path, int(match[3], 16))


def run_parts(folder: Location, kinds: Sequence[str] = DATA_FOLDERS) -> list[Part]:
    """All parts of a run, or those of some kinds, kind by kind."""
    return [part for kind in kinds for part in list_parts(folder / kind)]


def write_part(
    folder: Location,
    table: pa.Table,
    numbers: Sequence[int],
    stamp: Stamp,
    metadata: Mapping[bytes, bytes] | None = None,
    **options: object,
) -> Location:
    """Write a table as a part of one row group, under the name that vouches for its bytes.

    Args:
        numbers: the trajectories it covers, in order.
        options: of pyarrow's `write_table`.
    """
    covers = json.dumps([numbers[0], numbers[-1], len(numbers)]).encode()
    marks = stamp.metadata | {COVERS_KEY: covers, KIND_KEY: folder.name.encode()}
    marks |= reserve_checksums(table) | dict(metadata or {})
    marked = table.replace_schema_metadata(marks)
    sink = pa.BufferOutputStream()
    pq.write_table(marked, sink, row_group_size=max(1, table.num_rows), **options)
    data = bytearray(sink.getvalue())
    write_checksums(data)
    path = folder / f"{numbers[0]:06d}-{numbers[-1]:06d}.{zlib.crc32(data):08x}.parquet"
    put_file(path, bytes(data))
    return path


def read_part(part: Part) -> bytes:
    """A part's bytes, checked against its name."""
    data = read_file(part.path)
    if zlib.crc32(data) != part.checksum:
        raise RunError(
            f"{part.path}: damaged ({len(data)} bytes that do not match the checksum in the "
            f"name){_advice(part.path)}"
        )
    return data


def open_part(part: Part, run: str | None = None, *, whole: bool = False) -> PartFile:
    """A part's Parquet file, checked; or an error that names it.

    Args:
        run: digest of the run that the part must belong to; None takes any.
        whole: whether to look at every byte, also where a reader would fetch only what it needs.
    """
    file = _open(part, whole=whole)
    with naming(part.path):
        metadata = metadata_of(file)
        named = metadata.get(RUN_KEY, b"").decode()
        if run is not None and named != run:
            raise RunError(
                f"{part.path}: belongs to another run ({named or 'it names none'}, not {run}); "
                "move it back where it came from"
            )
        _check_place(part, metadata)
    return file


def whose(part: Part) -> str:
    """The digest of the run that a part belongs to; empty where it names none."""
    file = _open(part)
    with naming(part.path):
        return metadata_of(file).get(RUN_KEY, b"").decode()


def _open(part: Part, *, whole: bool = False) -> PartFile:
    """A part, read into memory; where that is far away, its footer, and the rest when needed."""
    if is_remote(part.path) and not whole:
        with naming(part.path):
            file = ColumnFile(part.path, part.checksum)
        if file.vouches:
            return file
    data = read_part(part)
    with naming(part.path):
        return pq.ParquetFile(pa.BufferReader(data))


def _check_place(part: Part, metadata: Mapping[bytes, bytes]) -> None:
    """Refuse a part that was moved or renamed."""
    kind, (first, last, _) = metadata[KIND_KEY].decode(), json.loads(metadata[COVERS_KEY])
    if (first, last) != (part.first, part.last):
        raise ValueError(f"it holds trajectories {first} to {last}, unlike its name")
    if kind != part.path.parent.name:
        raise ValueError(f"it belongs into {kind}")


def metadata_of(file: PartFile) -> dict[bytes, bytes]:
    """What a part says of itself."""
    return file.metadata.metadata or {}


@contextmanager
def naming(path: Location) -> Iterator[None]:
    """Whatever content makes its readers raise becomes an error that names the file."""
    try:
        yield
    except FileNotFoundError:  # which somebody has just removed
        raise
    except UNREADABLE as error:
        reason = brief_reason(error)
        raise RunError(f"{path}: cannot be read ({reason}){_advice(path)}") from error


def _advice(path: Location) -> str:
    return ADVICE.get(path.parent.name, "").format(range=path.name.partition(".")[0])


def brief_reason(error: BaseException) -> str:
    """Why content cannot be read, in a line."""
    if isinstance(error, KeyError):
        return f"it has no {error}"
    return " ".join(str(error).split())[:LONGEST_REASON] or type(error).__name__
