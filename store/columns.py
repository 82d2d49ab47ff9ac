"""Parquet files of which a reader far away takes the columns it needs, and checks what it takes.

A footer of ours holds the CRC-32 of every column; see `c4.store.checksums`.
"""

import mmap
import re
import zlib
from collections.abc import Sequence
from typing import TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq

from c4.store.checksums import crc32_piece, join_crc32
from c4.store.locations import Location
from c4.store.storage import read_ranges, read_tail

COLUMNS_KEY = b"c4.columns"
"""Where a footer keeps checksums, eight hexadecimal digits each: that of all that stands before the
footer, and then those of the columns.
"""
SPELLED = re.compile(re.escape(COLUMNS_KEY) + rb"\x18[\x00-\xff]{1,4}?((?:[0-9a-f]{8})+)")
"""How that stands in a footer. It is looked for before anybody reads the footer as one, because the
library may end the process at one that is damaged.
"""
DIGITS = 8
MAGIC = b"PAR1"
END = len(MAGIC) + 4
"""Bytes behind a footer: its length, and the magic."""
TAIL = 2**14
"""Bytes that are read from the end of a file, within which footers of ours lie."""

Range = tuple[int, int]


def reserve_checksums(table: pa.Table) -> dict[bytes, bytes]:
    """The place in a table's metadata where `write_checksums` puts what it finds."""
    return {COLUMNS_KEY: b"0" * DIGITS * (1 + table.num_columns)}


def write_checksums(data: bytearray) -> None:
    """Put the checksum of every column into the footer of a Parquet file that has a place for it.

    Nothing else changes, neither the length nor any other byte.
    """
    metadata = pq.read_metadata(pa.BufferReader(data))
    body = len(data) - END - _footer_length(data)
    place = SPELLED.search(data, body)
    found = b"".join(b"%08x" % zlib.crc32(data[a:b]) for a, b in [(0, body), *_ranges(metadata)])
    if place is None or len(found) > len(place[1]):
        raise ValueError("its footer has no place for the checksums of its columns")
    data[place.start(1) : place.start(1) + len(found)] = found


def _numbers(text: bytes) -> list[int]:
    return [int(text[start : start + DIGITS], 16) for start in range(0, len(text), DIGITS)]


def _footer_length(tail: bytes | bytearray) -> int:
    return int.from_bytes(tail[-END : -len(MAGIC)], "little")


def _ranges(metadata: pq.FileMetaData) -> list[Range]:
    """Where the columns of all row groups start and stop, in the order of their metadata."""
    groups = [metadata.row_group(i) for i in range(metadata.num_row_groups)]
    columns = [group.column(i) for group in groups for i in range(metadata.num_columns)]
    starts = [
        column.dictionary_page_offset if column.has_dictionary_page else column.data_page_offset
        for column in columns
    ]
    return [(s, s + c.total_compressed_size) for s, c in zip(starts, columns, strict=True)]


class ColumnFile:
    """A Parquet file of which the footer was read. Columns are fetched when first asked for.

    Whatever does not match the checksum in the file's name raises ValueError.
    """

    def __init__(self, path: Location, checksum: int) -> None:
        """Read the footer of a file.

        Args:
            checksum: that of the whole file.
        """
        self._path = path
        self._pieces: dict[Range, bytes] = {}
        self._tail, self._size = read_tail(path, TAIL)
        footer = self._footer()
        spelled = SPELLED.search(footer)
        self.vouches = spelled is not None
        """Whether the footer holds checksums; those that earlier versions wrote hold none."""
        if spelled is None:
            return
        body, *self._checksums = _numbers(spelled[1])
        if join_crc32([(body, self._size - len(footer)), crc32_piece(footer)]) != checksum:
            raise ValueError("its footer does not match the checksum in its name")
        stub = pq.ParquetFile(pa.BufferReader(MAGIC + footer))
        self.metadata: pq.FileMetaData = stub.metadata
        self.schema_arrow: pa.Schema = stub.schema_arrow

    def _footer(self) -> bytes:
        length = _footer_length(self._tail) + END
        if self._tail[-len(MAGIC) :] != MAGIC or not END < length <= self._size - len(MAGIC):
            raise ValueError("it does not end as a Parquet file")
        if length > len(self._tail):
            missing = (self._size - length, self._size - len(self._tail))
            self._tail = read_ranges(self._path, [missing])[0] + self._tail
        return self._tail[-length:]

    def _columns(self) -> list[tuple[int, Range]]:
        """Checksum and place of every column; a table without rows may have fewer."""
        return list(zip(self._checksums, _ranges(self.metadata), strict=False))

    def read(self, columns: Sequence[str] | None = None) -> pa.Table:
        """Some columns, or all, each checked against the footer."""
        wanted = [
            column
            for i, column in enumerate(self._columns())
            if columns is None or self._name(i % self.metadata.num_columns) in columns
        ]
        # Memory that is never written to takes no place, so the columns stand where they stood.
        whole = mmap.mmap(-1, self._size)
        pieces = self._fetch([where for _, where in wanted])
        for (checksum, (start, stop)), piece in zip(wanted, pieces, strict=True):
            if zlib.crc32(piece) != checksum:
                raise ValueError("a column does not match the checksum in its footer")
            whole[start:stop] = piece
        source = pa.BufferReader(pa.py_buffer(whole))
        return pq.ParquetFile(source, metadata=self.metadata).read(columns=columns)

    def _name(self, index: int) -> str:
        """The column that a leaf of the schema belongs to."""
        path: str = self.metadata.schema.column(index).path
        return path.partition(".")[0]

    def _fetch(self, ranges: Sequence[Range]) -> list[bytes]:
        """Pieces of the file; what is here already is not fetched again."""
        at = self._size - len(self._tail)
        for start, stop in ranges:
            if start >= at:
                self._pieces[start, stop] = self._tail[start - at : stop - at]
        missing = [where for where in ranges if where not in self._pieces]
        if missing:
            fetched = read_ranges(self._path, missing)
            self._pieces.update(zip(missing, fetched, strict=True))
        return [self._pieces[where] for where in ranges]


PartFile: TypeAlias = pq.ParquetFile | ColumnFile
"""An open part: whole in memory, or as far as it was asked for."""
