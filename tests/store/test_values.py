"""Files made by hand: whole, well named, and holding what no decode can have left."""

import json
import os
import zlib
from contextlib import suppress
from dataclasses import asdict, replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from made import MANIFEST, PARTS, make_cells, make_manifest, make_row, make_run, problems, write
from typer.testing import CliRunner

from c4.cli.app import app
from c4.errors import RunError
from c4.store.check import State, check_run
from c4.store.parts import ROW_KEY, list_parts
from c4.store.runs import open_run
from c4.store.writer import RunWriter


@pytest.fixture
def run(tmp_path):
    return make_run(tmp_path / "method=run")


def put(folder, table, metadata, name=None):
    """A table as a file whose name vouches for it."""
    sink = pa.BufferOutputStream()
    pq.write_table(table.replace_schema_metadata(metadata), sink)
    data = bytes(sink.getvalue())
    path = folder / f"{name or '000000-000002'}.{zlib.crc32(data):08x}.parquet"
    path.write_bytes(data)
    return path


def remake(run, kind, change, metadata=None):
    """Change the first part of a kind by hand, name and all; rows name their new cells."""
    part = list_parts(run / kind)[0]
    file = part.load().file
    marks = {k: v for k, v in file.schema_arrow.metadata.items() if k.startswith(b"c4.")}
    part.path.unlink()
    name = part.path.name.partition(".")[0]
    path = put(run / kind, change(file.read()), marks | (metadata or {}), name)
    if kind == "cells":
        remake(run, "rows", lambda table: table, {b"c4.cells": path.name.encode()})
    return path


def column(name, values, table, **typed):
    """A table with another column in a column's place."""
    at = table.column_names.index(name)
    field = table.schema.field(name)
    array = pa.array(values, typed.get("type", field.type))
    return table.set_column(at, field.with_type(array.type), array)


def at_row(name, value, row=5):
    """One value of a column changed."""

    def change(table):
        values = table.column(name).to_pylist()
        values[row] = value
        return column(name, values, table)

    return change


def nullable(name, table):
    fields = [f.with_nullable(True) if f.name == name else f for f in table.schema]
    return table.cast(pa.schema(fields))


CELLS = {
    "confidence is no number": at_row("confidence", np.nan),
    "confidence -5": at_row("confidence", -5.0),
    "confidence 1.0001": at_row("confidence", 1.0001),
    "gap -5": at_row("gap", -5.0),
    "gap infinite": at_row("gap", np.inf),
    "entropy -0.001": at_row("entropy", -0.001),
    "entropy 1e30": at_row("entropy", 1e30),
    "token -1": at_row("token", -1),
    "token beyond the vocabulary": at_row("token", 1000),
    "a row missing": lambda table: table.slice(0, table.num_rows - 1),
    "a row too many": lambda table: pa.concat_tables([table, table.slice(0, 1)]),
    "no rows": lambda table: table.slice(0, 0),
    "no column gap": lambda table: table.drop_columns(["gap"]),
    "a column more": lambda table: table.append_column("x", table.column("gap")),
    "columns exchanged": lambda table: table.select(table.column_names[::-1]),
    "gap as float64": lambda table: column(
        "gap", table.column("gap").to_pylist(), table, type=pa.float64()
    ),
    "gap with a null": lambda table: at_row("gap", None)(nullable("gap", table)),
    "masked may be null": lambda table: nullable("masked", table),
}
ORDER = {
    "step out of order": at_row("step", 2, row=0),
    "position out of order": at_row("position", 3, row=0),
    "trajectory out of order": at_row("trajectory", 2, row=0),
    "rows exchanged": lambda table: table.take([1, 0, *range(2, table.num_rows)]),
}
"""What only a check of every column shows: nobody reads these three columns otherwise."""


def assert_named(run, path, read):
    """Whoever reads the file is told which it is, and so is who checks the run."""
    with pytest.raises(RunError) as refused:
        read(open_run(run))
    assert f"{path}: cannot be read (" in str(refused.value)
    assert any(str(path) in what for what in problems(run))


@pytest.mark.parametrize("change", CELLS.values(), ids=CELLS)
def test_cells_that_no_model_gives_are_named_and_not_read(run, change):
    path = remake(run, "cells", change)
    assert_named(run, path, list)
    assert_named(run, path, lambda run: list(run.cells()))


PENDING = {name: CELLS[name] for name in ("gap -5", "a row missing", "no column gap")} | ORDER


@pytest.mark.parametrize("change", PENDING.values(), ids=PENDING)
def test_pending_cells_that_no_model_gives_are_named_and_not_sealed(run, change):
    path = remake(run, "pending", change)
    assert any(str(path) in what for what in problems(run))
    if change not in ORDER.values():
        assert_named(run, path, list)


@pytest.mark.parametrize("change", ORDER.values(), ids=ORDER)
def test_cells_out_of_order_are_named_by_a_check(run, change):
    path = remake(run, "cells", change)
    (said,) = problems(run)
    assert str(path) in said
    assert "order" in said


def with_row(name, value):
    return lambda table: at_row(name, value, row=1)(table)


ROWS = {
    "trajectory 7": with_row("trajectory", 7),
    "source_row -1": with_row("source_row", -1),
    "steps 0": with_row("steps", 0),
    "steps beyond the budget": with_row("steps", 7),
    "another length": with_row("length", 7),
    "final_ids too long": with_row("final_ids", list(range(7))),
    "final_ids negative": with_row("final_ids", [0, 1, 2, 3, 4, -1]),
    "final_ids beyond the vocabulary": with_row("final_ids", [0, 1, 2, 3, 4, 1000]),
    "final_ids with a null": with_row("final_ids", [0, 1, 2, 3, 4, None]),
    "prompt_ids beyond the vocabulary": with_row("prompt_ids", [5000]),
    "commit_step 0": with_row("commit_step", [1, 1, 1, 1, 1, 0]),
    "commit_step after the last": with_row("commit_step", [1, 1, 1, 1, 1, 7]),
    "committed_by nobody": with_row("committed_by", [0, 0, 0, 0, 0, 5]),
    "exit_step 0": with_row("exit_step", 0),
    "exit_step after the last": with_row("exit_step", 7),
    "tokens_before_end beyond": with_row("tokens_before_end", 7),
    "block_steps of three": with_row("block_steps", [2, 2, 2]),
    "block_steps that do not add up": with_row("block_steps", [1, 1]),
    "block_seconds negative": with_row("block_seconds", [-1.0, 0.0]),
    "wall_seconds no number": with_row("wall_seconds", float("nan")),
    "wall_seconds negative": with_row("wall_seconds", -1.0),
    "revoked negative": with_row("revoked", -1),
    "verdict of one's own": with_row("verdict", "splendid"),
    "style of one's own": with_row("style", "loud"),
    "a row missing": lambda table: table.slice(0, 2),
    "a row twice": lambda table: pa.concat_tables([table, table.slice(2, 1)]),
    "no rows": lambda table: table.slice(0, 0),
    "rows exchanged": lambda table: table.take([1, 0, 2]),
    "no column tests": lambda table: table.drop_columns(["tests"]),
    "steps as float": lambda table: column("steps", [6.0] * 3, table, type=pa.float64()),
    "steps may be null": lambda table: nullable("steps", table),
}


@pytest.mark.parametrize("change", ROWS.values(), ids=ROWS)
def test_rows_that_no_decode_leaves_are_named_and_not_read(run, change):
    path = remake(run, "rows", change)
    assert_named(run, path, lambda run: list(run.rows()))


def test_missing_columns_are_named(run):
    path = remake(run, "rows", ROWS["no column tests"])
    with pytest.raises(RunError, match=rf"{path.name}: .*not the columns .*missing: tests"):
        list(open_run(run).rows())
    result = CliRunner().invoke(app, ["runs", "--runs", str(run)])
    assert (result.exit_code, type(result.exception)) == (2, SystemExit)
    assert path.name in result.stderr.replace("\n", "")


@pytest.mark.parametrize(
    "row",
    [
        *({"steps": 7}, {"steps": "6"}, {"final_ids": [1]}, {"final_ids": None}, {"trajectory": 9}),
        *({"verdict": "splendid"}, {"text": 3}, {"choices": [1, 2]}, {"extra": 1}),
        *({"length": 10**30}, b"", b"{", b"[]", b"null", b"\xff", b"[" * 100_000),
    ],
    ids=lambda row: str(row)[:40],
)
def test_a_pending_row_that_no_decode_leaves_is_named(run, row):
    if isinstance(row, dict):
        row = json.dumps(asdict(make_row(3)) | row).encode()
    path = remake(run, "pending", lambda table: table, {ROW_KEY: row})
    assert_named(run, path, lambda run: list(run.rows()))


@pytest.mark.parametrize(
    "shapes",
    [
        *([], [[0, 6, 6]], [[0, 6, 6], [1, 6, 6], [1, 6, 6]], [[2, 6, 6], [1, 6, 6], [0, 6, 6]]),
        *([[0, 6, 6], [1, 6, 6], [2, 6]], [[0, 6, 6], [1, 6, 6], [2, -6, -6]]),
        *([[0, 3, 6], [1, 9, 6], [2, 6, 6]], [[0, 6, 6], [1, 6, 6], [2, 10**12, 6]]),
        *([[0, 6, 6], [1, 6, 6], [2, "6", 6]], {"a": 1}, 5, None),
    ],
    ids=str,
)
def test_shapes_that_do_not_fit_are_named(run, shapes):
    marks = {b"c4.shapes": json.dumps(shapes).encode()}
    path = remake(run, "cells", lambda table: table, marks)
    with pytest.raises(RunError) as refused:
        list(open_run(run))
    assert str(path) in str(refused.value) or "are not of one decode" in str(refused.value)
    assert any(str(path) in what for what in problems(run))


GRADES = {
    "verdict of one's own": at_row("verdict", "splendid", row=0),
    "grader of one's own": at_row("grader", "me", row=0),
    "number 0": at_row("number", 0, row=0),
    "trajectory -1": at_row("trajectory", -1, row=0),
    "no rows": lambda table: table.slice(0, 0),
    "no column number": lambda table: table.drop_columns(["number"]),
    "a row twice": lambda table: pa.concat_tables([table, table]),
}


@pytest.mark.parametrize("change", GRADES.values(), ids=GRADES)
def test_grades_that_no_grader_gives_are_named(run, change):
    path = remake(run, "grades", change)
    assert_named(run, path, lambda run: list(run.rows()))


NAMES = ["000000-99999999999999", "000001-000000", "000003-99999999999999"]


@pytest.mark.parametrize("kind", ["rows", "cells", "pending", "grades"])
@pytest.mark.parametrize("name", NAMES)
def test_a_name_that_claims_too_much_takes_nothing_down(run, kind, name):
    """The file says otherwise, and nothing is sized by its name."""
    part = list_parts(run / kind)[0].path
    grand = part.with_name(f"{name}.{part.name.split('.')[1]}.parquet")
    part.rename(grand)
    refused = []
    for read in (lambda run: list(run.rows()), lambda run: list(run.cells()), len):
        try:
            read(open_run(run))
        except RunError as error:
            refused.append(str(error))
    assert all(grand.name in said or "cells are missing" in said for said in refused)
    # A pending copy of what is sealed is not read, and added grades only with the rows.
    assert refused or (kind == "pending" and name < "000003")
    assert any(grand.name in what for what in problems(run))
    result = CliRunner().invoke(app, ["runs", "--runs", str(run)])
    assert (result.exit_code == 0) == (not refused)
    with suppress(RunError):
        write(run)
    assert grand.exists()


@pytest.mark.parametrize("claim", [[0, 10**14, 1], [0, 10**14, 10**14 + 1], [0, 2, 9], 3, None])
def test_metadata_that_claim_too_much_take_nothing_down(run, claim):
    name = "000000-99999999999999" if claim and claim != 3 and claim[1] > 2 else "000000-000002"
    part = list_parts(run / "rows")[0]
    file = part.load().file
    marks = dict(file.schema_arrow.metadata) | {b"c4.trajectories": json.dumps(claim).encode()}
    part.path.unlink()
    path = put(run / "rows", file.read(), marks, name)
    with pytest.raises(RunError):
        len(open_run(run))
    assert any(path.name in what for what in problems(run))


@pytest.mark.parametrize(
    ("kind", "to"), [("rows", "pending"), ("pending", "rows"), ("cells", "rows")]
)
def test_a_part_in_another_folder_is_named(run, kind, to):
    part = list_parts(run / kind)[0].path
    moved = part.rename(run / to / part.name)
    said = problems(run)
    assert any(f"{moved}: cannot be read (it belongs in {kind}/)" in what for what in said)


def test_cells_of_another_decode_of_the_run_are_noticed(run, tmp_path):
    """As whole as the run's own, of the same run, of the same trajectories: but not these rows'."""
    other = tmp_path / "other"
    with RunWriter(other) as writer:
        writer.start(MANIFEST, "{}")
        for i in range(3):
            writer.add(make_row(i), make_cells(i + 50))
        writer.seal(PARTS[0])
    own, foreign = (list_parts(folder / "cells")[0].path for folder in (run, other))
    own.unlink()
    moved = run / "cells" / foreign.name
    moved.write_bytes(foreign.read_bytes())
    for read in (list, lambda run: list(run.rows()), lambda run: list(run.cells())):
        with pytest.raises(RunError, match=rf"{moved.name}: not the cells that were sealed with"):
            read(open_run(run))
    assert any("its cells are missing" in what for what in problems(run))


def test_of_two_parts_of_cells_the_rows_own_are_read(run, tmp_path):
    expected = list(open_run(run).rows())
    stray = remake_copy(run)
    assert [t.row for t in open_run(run)] == expected
    found = {finding.path: finding.state for finding in check_run(run)}
    assert found[stray] is State.LEFTOVER
    write(run)
    assert not stray.exists()


def remake_copy(run):
    """The first part of cells once more, with other bytes."""
    part = list_parts(run / "cells")[0]
    file = part.load().file
    marks = {k: v for k, v in file.schema_arrow.metadata.items() if k.startswith(b"c4.")}
    return put(run / "cells", file.read(), marks)


def test_steps_of_rows_and_cells_are_compared(run):
    """Hand-made rows that name their cells, but count their steps otherwise."""

    def shorter(table):
        table = with_row("steps", 5)(table)
        return with_row("block_steps", [4, 1])(table)

    remake(run, "rows", shorter)
    with pytest.raises(RunError, match="its rows and its cells are not of one decode"):
        list(open_run(run))
    assert any("other numbers of steps" in what for what in problems(run))


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_a_file_that_may_not_be_read_is_named(run):
    path = list_parts(run / "rows")[0].path
    path.chmod(0)
    with pytest.raises(RunError, match=rf"{path.name}: cannot be read"):
        list(open_run(run).rows())


def test_a_folder_or_a_link_in_the_place_of_a_file_is_no_traceback(run):
    part = list_parts(run / "rows")[0].path
    part.unlink()
    part.mkdir()
    (run / "tokenizer.json").unlink()
    (run / "tokenizer.json").symlink_to("tokenizer.json")
    assert open_run(run).indices == [3, 4]
    assert any("tokenizer.json" in what for what in problems(run))
    with pytest.raises(RunError, match=r"tokenizer\.json"):
        open_run(run).text([1])


def test_a_tokenizer_that_is_none_is_named(run):
    with pytest.raises(RunError, match=r"tokenizer\.json: not a tokenizer"):
        open_run(run).text([1])


def test_rules_of_their_own_may_spend_more_steps_than_the_budget(tmp_path):
    manifest = make_manifest(cells=False, method="wino", rule={"name": "wino"})
    with RunWriter(tmp_path) as writer:
        writer.start(manifest, "{}")
        writer.add(replace(make_row(0), steps=9, block_steps=[5, 4]), None)
    assert [row.steps for row in open_run(tmp_path).rows()] == [9]
