"""Files of which only some columns are read, and what their checksums vouch for."""

import zlib

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from c4.errors import RunError
from c4.store import parts
from c4.store.checksums import crc32_piece, join_crc32
from c4.store.columns import COLUMNS_KEY, TAIL, ColumnFile
from c4.store.contents import Contents
from c4.store.parts import Part, Stamp, list_parts, write_part
from c4.store.runs import open_run
from tests.store.made import MANIFEST, write


@given(st.lists(st.binary(max_size=300), max_size=6))
def test_the_checksum_of_a_whole_follows_from_those_of_its_pieces(pieces):
    assert join_crc32(map(crc32_piece, pieces)) == zlib.crc32(b"".join(pieces))


@pytest.fixture
def far_away(monkeypatch):
    """Folders are read as if they were far away."""
    monkeypatch.setattr(parts, "is_remote", lambda location: True)


def a_part(folder, table, **options):
    path = write_part(folder, table, [3], Stamp.of(MANIFEST), **options)
    return Part(3, 3, path, int(path.name.split(".")[1], 16))


def test_columns_that_are_asked_for_are_read_and_no_others(tmp_path):
    noise = zlib.compress(bytes(range(256)) * 400, 0)
    numbers = pa.array(range(50_000), pa.int64())
    table = pa.table({"a": numbers, "b": [noise[i : i + 9] for i in range(50_000)], "c": numbers})
    part = a_part(tmp_path, table, compression="none", use_dictionary=False)
    file = ColumnFile(part.path, part.checksum)
    assert file.vouches
    assert file.schema_arrow.names == table.column_names
    data = bytearray(part.path.read_bytes())
    start = file.metadata.row_group(0).column(1).data_page_offset
    data[start + 1000] ^= 1  # in b
    part.path.write_bytes(data)
    damaged = ColumnFile(part.path, part.checksum)
    assert damaged.read(["c", "a"]).equals(table.select(["c", "a"]))
    for columns in (["b"], None):
        with pytest.raises(ValueError, match="a column does not match the checksum"):
            damaged.read(columns)


@pytest.mark.parametrize("rows", [0, 1, 1000])
def test_lists_empty_tables_and_long_footers_are_read_too(tmp_path, rows):
    table = pa.table(
        {"list": pa.array([[1, None]] * rows, pa.list_(pa.int32())), "text": ["é"] * rows},
        schema=pa.schema([("list", pa.list_(pa.int32())), ("text", pa.string())]),
    )
    part = a_part(tmp_path, table, metadata={b"long": b"x" * 3 * TAIL})
    file = ColumnFile(part.path, part.checksum)
    assert file.vouches
    assert file.read().equals(table)


def test_every_flipped_byte_is_named_or_without_effect(tmp_path, far_away):
    write(tmp_path)
    run = open_run(tmp_path)
    rows, cells = list(run.rows()), {i: c.token.tobytes() for i, c in run.cells()}
    noticed, tried, without_effect = 0, 0, []
    for part in (*list_parts(tmp_path / "rows"), *list_parts(tmp_path / "cells")):
        data = part.path.read_bytes()
        for at in range(0, len(data), 89):
            tried += 1
            part.path.write_bytes(data[:at] + bytes([data[at] ^ 1 << at % 8]) + data[at + 1 :])
            try:
                now = open_run(tmp_path)
                assert list(now.rows()) == rows
                assert {i: c.token.tobytes() for i, c in now.cells()} == cells
            except RunError as error:
                noticed += str(part.path) in str(error)
            else:
                without_effect.append(at)
        part.path.write_bytes(data)
    assert noticed + len(without_effect) == tried
    assert noticed > 0.8 * tried


def test_a_part_under_the_name_of_another_is_refused(tmp_path, far_away):
    write(tmp_path / "a")
    write(tmp_path / "b", indices=range(3), parts=[range(0, 3)])
    mine = list_parts(tmp_path / "a" / "cells")[0]
    other = list_parts(tmp_path / "a" / "rows")[0]
    mine.path.write_bytes(other.path.read_bytes())
    with pytest.raises(RunError, match="does not match the checksum in its name"):
        list(open_run(tmp_path / "a").cells())


def test_parts_of_earlier_versions_are_read_whole(tmp_path, far_away):
    write(tmp_path)
    (first, *_) = list_parts(tmp_path / "rows")
    file = pq.ParquetFile(first.path)
    marks = {k: v for k, v in file.metadata.metadata.items() if k != COLUMNS_KEY}
    marks.pop(b"ARROW:schema")
    sink = pa.BufferOutputStream()
    pq.write_table(file.read().replace_schema_metadata(marks), sink)
    data = sink.getvalue().to_pybytes()
    first.path.unlink()
    path = first.path.with_name(f"000000-000002.{zlib.crc32(data):08x}.parquet")
    path.write_bytes(data)
    old = Part(0, 2, path, zlib.crc32(data))
    assert not ColumnFile(path, old.checksum).vouches
    assert [row.trajectory for row in Contents.of(old, MANIFEST).rows()] == [0, 1, 2]
    path.write_bytes(data[:-20] + b"x" + data[-19:])
    with pytest.raises(RunError, match=r"damaged|cannot be read"):
        Contents.of(old, MANIFEST)
