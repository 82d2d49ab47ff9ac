"""Parts: the self-describing Parquet files of a run.

A part's name holds the trajectories it covers and the CRC-32 of its bytes. Its metadata hold the
identity of its run, so that a run can be rebuilt from its parts, and no part is mistaken for one of
another run. Parts are never changed.
"""

import json
import re
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from c4.errors import RunError
from c4.store.cells import CELLS, SIGNALS, Cells, batch_cells, check_cells, signal_columns
from c4.store.columns import MOST_STEPS, check_schema
from c4.store.locations import Location
from c4.store.manifest import DATA_FOLDERS, Manifest, identity_digest
from c4.store.rows import Row, check_rows, rows_from_table, table_from_json
from c4.store.storage import list_files, put_file, read_file
from c4.tasks import Shape

PART = re.compile(r"([0-9]{6,})-([0-9]{6,})\.([0-9a-f]{8})\.parquet")
"""The name of a part: first and last trajectory, and the CRC-32 of the file."""
RUN_KEY = b"c4.run"
"""The digest of the run's identity."""
IDENTITY_KEY = b"c4.identity"
"""The identity of the run, as JSON."""
TOKENIZER_KEY = b"c4.tokenizer"
"""The SHA-256 of the run's tokenizer.json."""
MADE_KEY = b"c4.made_with"
"""JSON: the devices and library versions that made the part, without duplicates."""
COVERS_KEY = b"c4.trajectories"
"""JSON: the first and the last trajectory in the part, and how many there are."""
KIND_KEY = b"c4.kind"
"""The folder that the part was written to."""
COLUMNS_KEY = b"c4.columns"
"""CRC-32 of all bytes before the footer and of each column, eight hexadecimal digits each. Format 3
requires them; c4 writes them, but checks only the CRC-32 of the whole file, which is in its name.
"""
ROW_KEY = b"c4.trajectory"
"""Pending only: the row, as JSON, so that one rename finishes row and cells."""
CELLS_KEY = b"c4.cells"
"""Rows only: the name of the part of cells that was sealed with them."""
SHAPES_KEY = b"c4.shapes"
"""Cells only: the number, steps and positions of each trajectory."""
WRITE_OPTIONS: Mapping[str, Mapping[str, Any]] = {
    "rows": {"compression": "zstd", "write_page_checksum": True},
    "cells": {
        "compression": "zstd",
        "compression_level": 3,
        "use_dictionary": ["trajectory", "token", "position"],
        "column_encoding": {
            "step": "DELTA_BINARY_PACKED",
            "confidence": "BYTE_STREAM_SPLIT",
            "gap": "BYTE_STREAM_SPLIT",
            "entropy": "BYTE_STREAM_SPLIT",
            "masked": "RLE",
        },
        "write_page_checksum": True,
    },
    "pending": {"compression": "zstd", "compression_level": 1},
    "grades": {"compression": "zstd"},
    "signals": {"compression": "lz4"},
}
"""Options of pyarrow's `write_table` for each kind of part."""
END = 8
"""Bytes after a Parquet footer: its length and the letters PAR1."""
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
"""Errors that reading can raise for content that c4 never writes."""
ADVICE = {
    "rows": "; delete it and, if there is one, cells/{range}.*.parquet, and give the command that "
    "recorded the run again",
    "cells": "; delete it and rows/{range}.*.parquet, and give the command that recorded the run "
    "again",
    "pending": "; delete it and give the command that recorded the run again",
    "grades": "; delete it and grade again with: c4 grade",
    "signals": "; delete it, and it is computed again",
}
"""Advice for a part that cannot be read, by its folder. The rows and cells of the same
trajectories have the same range in their names.
"""
LONGEST_REASON = 300
"""Maximum number of characters that an error quotes from a library's message."""

Shapes = list[tuple[int, int, int]]
"""The number, steps and positions of every trajectory in a part."""


@dataclass(frozen=True, order=True)
class Part:
    """A Parquet file of a run: the fields of its name and, once loaded, its content.

    `load` reads the whole file, checks it against its name and its run, and keeps it in memory
    until `forget`. Errors name the file.
    """

    first: int
    last: int
    path: Location
    checksum: int
    sealed_cells: "Part | None" = field(default=None, compare=False, repr=False)
    """The part of cells that belongs to this part of rows, if any."""

    @property
    def trajectories(self) -> range:
        """The trajectories by the part's name, which is untrusted until `load` has checked it."""
        return range(self.first, self.last + 1)

    @property
    def kind(self) -> str:
        """The part's folder: rows, cells, pending (one row and its cells), grades or signals."""
        return self.path.parent.name

    @property
    def is_pending(self) -> bool:
        """Whether the part is one finished trajectory, not sealed into rows and cells yet."""
        return self.kind == "pending"

    @property
    def cells(self) -> "Part | None":
        """The part that holds the cells of these rows; a pending part holds them itself."""
        return self if self.is_pending else self.sealed_cells

    def load(self, run: str | None = None) -> "Part":
        """Read and check the part, unless it is loaded already.

        Args:
            run: digest of the run that the part must belong to; None accepts any.
        """
        with naming(self.path):
            if run is not None and self.run != run:
                raise RunError(
                    f"{self.path}: belongs to another run ({self.run or 'it names none'}, not "
                    f"{run}); move it back where it came from"
                )
            first, last, count = json.loads(self.metadata[COVERS_KEY])
            if (first, last) != (self.first, self.last):
                raise ValueError(f"it holds trajectories {first} to {last}, unlike its name")
            kind = self.metadata[KIND_KEY].decode()
            if kind != self.kind:
                raise ValueError(f"it belongs in {kind}/")
            if run is not None and kind in ("rows", "cells", "pending"):
                held = self.file.metadata.num_rows if kind == "rows" else len(self.shapes)
                if not held == count == len(self.trajectories):
                    raise ValueError(f"it holds {held} trajectories, unlike its name")
        return self

    def forget(self) -> None:
        """Free the memory of the part; it is read again when it is needed."""
        for name in self.__dict__.keys() - {spec.name for spec in fields(self)}:
            self.__dict__.pop(name, None)

    @cached_property
    def data(self) -> bytes:
        """The bytes of the file, checked against the checksum in its name."""
        data = read_file(self.path)
        if zlib.crc32(data) != self.checksum:
            raise RunError(
                f"{self.path}: damaged ({len(data)} bytes that do not match the checksum in the "
                f"name){_advice(self.path)}"
            )
        return data

    @cached_property
    def file(self) -> pq.ParquetFile:
        """The Parquet file, in memory."""
        with naming(self.path):
            return pq.ParquetFile(pa.BufferReader(self.data))

    @cached_property
    def metadata(self) -> dict[bytes, bytes]:
        """The key-value metadata of the Parquet file."""
        return self.file.metadata.metadata or {}

    @property
    def run(self) -> str:
        """The digest of the run named in the metadata; empty if the metadata name none."""
        with naming(self.path):
            return self.metadata.get(RUN_KEY, b"").decode()

    @cached_property
    def identity(self) -> dict[str, Any]:
        """The identity of the part's run."""
        with naming(self.path):
            identity: dict[str, Any] = json.loads(self.metadata[IDENTITY_KEY])
            if identity_digest(identity) != self.run:
                raise ValueError("its identity does not match its digest")
            return identity

    @property
    def tokenizer_sha256(self) -> str:
        """SHA-256 of the tokenizer.json of the part's run."""
        with naming(self.path):
            return self.metadata[TOKENIZER_KEY].decode()

    @property
    def made_with(self) -> list[dict[str, Any]]:
        """The devices and library versions that made the part, without duplicates."""
        with naming(self.path):
            made: list[dict[str, Any]] = json.loads(self.metadata[MADE_KEY])
            return made

    @property
    def cells_name(self) -> str | None:
        """The name of the part of cells that was sealed with this part of rows."""
        name = self.metadata.get(CELLS_KEY)
        return None if name is None else name.decode("utf-8", "replace")

    @property
    def has_cells(self) -> bool:
        """Whether the part holds cells; a pending part does not if its run keeps no cells."""
        return self.kind == "cells" or self.file.metadata.num_rows > 0

    def rows(self) -> list[Row]:
        """Return the checked rows of a part of rows or of a pending part."""
        with naming(self.path):
            row = self.metadata[ROW_KEY] if self.is_pending else None
            table = self.file.read() if row is None else table_from_json(row)
            check_rows(table, self.trajectories, self.identity)
            return rows_from_table(table)

    @cached_property
    def shapes(self) -> Shapes:
        """The number, steps and positions of each trajectory whose cells the part holds."""
        if self.is_pending:
            row = json.loads(self.metadata[ROW_KEY])
            found = [[row["trajectory"], row["steps"], row["length"]]]
        else:
            found = json.loads(self.metadata[SHAPES_KEY])
        shapes: Shapes = [(number, steps, length) for number, steps, length in found]
        expected = Shape(**self.identity["shape"]).length
        for number, shape in enumerate(shapes, self.first):
            if any(type(value) is not int for value in shape):
                raise ValueError(f"{shape} are not whole numbers")
            found_number, steps, length = shape
            if found_number != number:
                raise ValueError(f"it holds trajectory {found_number} where {number} should be")
            if not 1 <= steps <= MOST_STEPS or length != expected:
                raise ValueError(f"trajectory {number} cannot have {steps} steps of {length}")
        return shapes

    def batches(self) -> list[tuple[list[int], Cells]]:
        """Return trajectories and their cells in batches of one shape: (n, steps, positions)."""
        with naming(self.path):
            columns = signal_columns(self._cell_table(list(SIGNALS)))
            check_cells(columns, self.identity["vocab_size"])
            numbers = iter(self.trajectories)
            batches = batch_cells(columns, [(steps, length) for _, steps, length in self.shapes])
            return [([next(numbers) for _ in batch.token], batch) for batch in batches]

    def cell_table(self) -> pa.Table:
        """Return all columns of the cells as stored; empty if a pending part has no cells."""
        with naming(self.path):
            return self._cell_table() if self.has_cells else CELLS.empty_table()

    def _cell_table(self, columns: list[str] | None = None) -> pa.Table:
        check_schema(self.file.schema_arrow, CELLS)
        expected, found = sum(s * n for _, s, n in self.shapes), self.file.metadata.num_rows
        if found != expected:
            raise ValueError(f"it has {found:,} cells instead of {expected:,}")
        return self.file.read(columns=columns)


def named_part(path: Location) -> Part:
    """Return the part at a path; raise ValueError if the file name is not that of a part."""
    match = PART.fullmatch(path.name)
    if match is None:
        raise ValueError(f"{path.name} is no part")
    return Part(int(match[1]), int(match[2]), path, int(match[3], 16))


def list_parts(folder: Location) -> list[Part]:
    """List the parts in a folder, in order, and ignore files with other names."""
    return sorted(named_part(p) for p in list_files(folder) if PART.fullmatch(p.name))


def run_parts(folder: Location, kinds: Sequence[str] = DATA_FOLDERS) -> list[Part]:
    """List the parts of a run, kind by kind; by default of all kinds."""
    return [part for kind in kinds for part in list_parts(folder / kind)]


def write_part(
    folder: Location,
    table: pa.Table,
    numbers: Sequence[int],
    manifest: Manifest,
    metadata: Mapping[bytes, bytes] | None = None,
    made_with: Sequence[Mapping[str, Any]] | None = None,
) -> Part:
    """Write a table as a part of one row group, under a name with the checksum of its bytes.

    Returns the part, which keeps its bytes in memory until `forget`.

    Args:
        folder: the run's folder for parts of this kind.
        numbers: the trajectories that the part covers, in order.
        made_with: the devices and library versions that made it, if not those of the manifest.
    """
    made = [manifest.made_with] if made_with is None else list(made_with)
    marks = {
        RUN_KEY: manifest.digest.encode(),
        IDENTITY_KEY: json.dumps(manifest.identity, sort_keys=True).encode(),
        TOKENIZER_KEY: manifest.tokenizer_file_sha256.encode(),
        MADE_KEY: json.dumps(made, sort_keys=True).encode(),
        COVERS_KEY: json.dumps([numbers[0], numbers[-1], len(numbers)]).encode(),
        KIND_KEY: folder.name.encode(),
        COLUMNS_KEY: b"0" * 8 * (1 + table.num_columns),
        **(metadata or {}),
    }
    sink = pa.BufferOutputStream()
    marked = table.replace_schema_metadata(marks)
    options = WRITE_OPTIONS[folder.name]
    pq.write_table(marked, sink, row_group_size=max(1, table.num_rows), **options)
    written = bytearray(sink.getvalue())
    _fill_in_checksums(written)
    data = bytes(written)
    name = f"{numbers[0]:06d}-{numbers[-1]:06d}.{zlib.crc32(data):08x}.parquet"
    put_file(folder / name, data)
    part = named_part(folder / name)
    part.__dict__["data"] = data
    return part


def _fill_in_checksums(data: bytearray) -> None:
    """Replace the zeros in a Parquet file's footer with the checksums of `COLUMNS_KEY`."""
    body = len(data) - END - int.from_bytes(data[-END:-4], "little")
    metadata = pq.read_metadata(pa.BufferReader(data))
    pieces = [(0, body)]
    for group in map(metadata.row_group, range(metadata.num_row_groups)):
        for column in map(group.column, range(metadata.num_columns)):
            start = column.data_page_offset
            if column.has_dictionary_page:
                start = column.dictionary_page_offset
            pieces.append((start, start + column.total_compressed_size))
    found = b"".join(b"%08x" % zlib.crc32(data[start:stop]) for start, stop in pieces)
    place = data.index(b"0" * len(found), data.index(COLUMNS_KEY + b"\x18", body))
    data[place : place + len(found)] = found


@contextmanager
def naming(path: Location) -> Iterator[None]:
    """Turn any error caused by a file's content into a RunError that names the file."""
    try:
        yield
    except FileNotFoundError:  # another process has just removed it
        raise
    except UNREADABLE as error:
        reason = brief_reason(error)
        raise RunError(f"{path}: cannot be read ({reason}){_advice(path)}") from error


def _advice(path: Location) -> str:
    return ADVICE.get(path.parent.name, "").format(range=path.name.partition(".")[0])


def brief_reason(error: BaseException) -> str:
    """Return on one line why content cannot be read."""
    if isinstance(error, KeyError):
        return f"it has no {error}"
    return " ".join(str(error).split())[:LONGEST_REASON] or type(error).__name__


def missing_cells(rows: Part) -> RunError:
    """Return the error, shared by readers and writers, for rows whose cells are missing."""
    return RunError(
        f"{rows.path}: its cells are missing; bring them back, or delete that file of rows too and "
        "record again"
    )
