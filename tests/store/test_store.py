"""What is on disk: written, read back bit for bit, damaged, refused."""

import errno
from dataclasses import replace

import numpy as np
import pytest
from made import (
    MANIFEST,
    PARTS,
    cut,
    make_cells,
    make_manifest,
    make_row,
    snapshot,
    write,
)

from c4.errors import RunError
from c4.store import folders, parts, runs
from c4.store.cells import CELLS, CELLS_PER_PART, SIGNALS, cells_to_table
from c4.store.grades import GRADES
from c4.store.manifest import (
    SCHEMA_VERSION,
    identity_digest,
    name_differences,
    read_manifest,
    run_folder,
    write_manifest,
)
from c4.store.parts import list_parts, write_part
from c4.store.rows import ROWS
from c4.store.runs import find_recordings, find_runs, open_run
from c4.store.storage import read_file
from c4.store.writer import RunWriter, plan_parts
from c4.tasks import Grade, Shape, Verdict


@pytest.fixture
def whole(tmp_path):
    write(tmp_path / "whole")
    return tmp_path / "whole"


def assert_same(run, index):
    trajectory = run.trajectory(index)
    assert trajectory.row == make_row(index)
    for name in SIGNALS:
        expected, got = getattr(make_cells(index), name), getattr(trajectory.cells, name)
        assert got.dtype == expected.dtype
        np.testing.assert_array_equal(got, expected)


def test_what_is_written_is_read_back_bit_for_bit(whole):
    run = open_run(whole)
    assert len(run) == 5
    assert [t.row.trajectory for t in run] == [0, 1, 2, 3, 4]
    assert [row.trajectory for row in run.rows()] == [0, 1, 2, 3, 4]
    for index in range(5):
        assert_same(run, index)


def test_pending_trajectories_can_be_read_before_their_part_is_full(tmp_path):
    write(tmp_path / "run", range(4), PARTS[:1])
    run = open_run(tmp_path / "run")
    assert run.indices == [0, 1, 2, 3]
    assert [t.row.trajectory for t in run] == [0, 1, 2, 3]
    assert_same(run, 3)


FROZEN = {
    "cells": (
        "trajectory:int32 step:int16 position:int16 token:int32 confidence:float gap:float "
        "entropy:float masked:bool"
    ),
    "rows": (
        "trajectory:int32 source_row:int32 prompt:string prompt_ids:[int32] target:string "
        "preamble:string tests:string choices:[string] final_ids:[int32] text:string "
        "answer:string? verdict:string? style:string? ending:string? grader:string? "
        "length:int32 budget:int32 block_length:int32 steps:int32 tokens_before_end:int32 "
        "wall_seconds:double block_steps:[int32] block_seconds:[double] exit_step:int32? "
        "committed_by:[uint8] commit_step:[int32] revoked:int32"
    ),
    "grades": (
        "trajectory:int32 answer:string? verdict:string style:string ending:string grader:string "
        "version:string number:int32"
    ),
}


@pytest.mark.parametrize(("kind", "schema"), [("cells", CELLS), ("rows", ROWS), ("grades", GRADES)])
def test_columns_are_frozen(kind, schema):
    """A question mark stands behind a column that may hold nulls, brackets around one of lists."""
    found = [f"{field.name}:{field.type}{'?' if field.nullable else ''}" for field in schema]
    assert " ".join(found).replace("list<item: ", "[").replace(">", "]") == FROZEN[kind]


@pytest.mark.parametrize("verdict", [*Verdict, None])
def test_a_row_is_correct_wrong_or_neither_as_its_verdict_says(verdict):
    correct = {Verdict.RIGHT: True, Verdict.NOT_GRADABLE: None, None: None}.get(verdict, False)
    assert replace(make_row(0), verdict=verdict).correct is correct
    if verdict is not None:
        assert Grade("7", verdict).correct is correct


def test_cells_are_stored_position_by_position():
    table = cells_to_table(3, make_cells(0)).to_pydict()
    assert table["position"][:7] == [0] * 6 + [1]
    assert table["step"][:7] == [1, 2, 3, 4, 5, 6, 1]
    assert set(table["trajectory"]) == {3}


@pytest.mark.parametrize("indices", [range(100), [*range(10), *range(50, 60)], [7]])
def test_parts_cover_everything_once_without_gaps_inside(indices):
    parts = plan_parts(indices, Shape(length=96, budget=96, block_length=12))
    assert [i for part in parts for i in part] == sorted(indices)
    assert max(len(part) for part in parts) <= CELLS_PER_PART // 96**2


def test_a_trajectory_larger_than_a_part_has_one_of_its_own():
    huge = Shape(length=1024, budget=1024, block_length=1024)
    assert plan_parts(range(3), huge) == [range(0, 1), range(1, 2), range(2, 3)]


def test_any_flipped_byte_is_noticed(whole):
    part = list_parts(whole / "cells")[1]
    data = part.path.read_bytes()
    for at in range(0, len(data), 23):
        part.path.write_bytes(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])
        with pytest.raises(RunError, match="damaged"):
            part.load()


def test_an_ungraded_copy_gives_way_to_the_graded_one(tmp_path):
    with RunWriter(tmp_path) as writer:
        writer.start(MANIFEST, "{}")
        writer.add(replace(make_row(0), answer=None, verdict=None), make_cells(0))
        writer.replace(make_row(0), make_cells(0))
        assert len(list_parts(tmp_path / "pending")) == 1
    assert_same(open_run(tmp_path), 0)


def test_a_swapped_tokenizer_is_noticed(whole):
    (whole / "tokenizer.json").write_text('{"other": 1}')
    with pytest.raises(RunError, match=r"tokenizer\.json: damaged"):
        assert open_run(whole).vocabulary


def test_temporary_files_of_others_are_left_alone(whole):
    (whole / "notes.tmp").write_text("mine")
    (whole / "cells" / "notes.0123abcd.tmp").write_text("mine")
    (whole / "cells" / "000000-000002.00000000.parquet.0123abcd.tmp").write_text("half")
    write(whole)
    assert (whole / "notes.tmp").exists()
    assert [path.name for path in (whole / "cells").glob("*.tmp")] == ["notes.0123abcd.tmp"]


@pytest.mark.parametrize("kind", ["rows", "cells"])
@pytest.mark.parametrize("lost", ["a file", "the folder"])
def test_half_of_a_sealed_part_deletes_nothing(whole, tmp_path, kind, lost):
    """A folder that is not mounted, or half of a copy."""
    aside, kept = tmp_path / "aside", snapshot(whole)
    moved = whole / kind if lost == "the folder" else list_parts(whole / kind)[0].path
    moved.rename(aside)
    before = snapshot(whole)
    rest = list_parts(whole / ("cells" if kind == "rows" else "rows"))[0].path
    said = f"{rest}: its {kind} are missing; bring them back, or delete that file of"
    for _ in range(2):
        with pytest.raises(RunError) as refused:
            write(whole, range(1))
        assert said in str(refused.value)
        assert snapshot(whole) == before
    if kind == "cells":
        with pytest.raises(RunError) as refused:
            open_run(whole)
        assert said in str(refused.value)
    aside.rename(moved)
    assert write(whole) == set()
    assert snapshot(whole) == kept


def test_a_folder_that_is_no_recording_says_so(tmp_path):
    with pytest.raises(RunError, match=r"no manifest\.json, so not a recording"):
        open_run(tmp_path)
    with pytest.raises(RunError, match="no such folder"):
        open_run(tmp_path / "nowhere")


def test_a_full_disk_leaves_no_trace_and_loses_nothing(tmp_path, whole, monkeypatch):
    folder = tmp_path / "run"
    write(folder, range(2), [])
    before = snapshot(folder)

    def full(descriptor):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(folders.os, "fsync", full)
        with pytest.raises(OSError, match="No space left"):
            write(folder)
    assert snapshot(folder) == before
    write(folder)
    assert snapshot(folder) == snapshot(whole)


def test_two_writers_share_a_run_but_none_throws_it_away_under_the_other(whole):
    with RunWriter(whole) as one, RunWriter(whole) as other:
        for writer in (one, other):
            writer.start(MANIFEST, "{}")
            assert writer.sealed == {0, 1, 2, 3, 4}
        with pytest.raises(RunError, match=r"worker \w+ is writing here"):
            other.start(MANIFEST, "{}", fresh=True)
    assert len(open_run(whole)) == 5
    assert {path.name for path in whole.iterdir() if path.is_dir()} == {"rows", "cells", "pending"}


def test_a_run_made_differently_is_refused_and_what_differs_is_named(whole):
    other = make_manifest(task="math", model="m2")
    with RunWriter(whole) as writer, pytest.raises(RunError) as caught:
        writer.start(other, "{}")
    assert "task: 'gsm8k' there, 'math' here" in str(caught.value)
    assert "model: 'm' there, 'm2' here" in str(caught.value)
    assert "--fresh" in str(caught.value)


def test_of_a_long_value_only_what_differs_is_shown():
    fields = {"doc_to_text": "word " * 99, "n": 2}
    edited = {**fields, "doc_to_text": "word " * 90 + "end"}
    there, here = ({"task_definition": {"fields": f}} for f in (fields, edited))
    (line,) = name_differences(there, here, ["task_definition"])
    assert line.startswith("  task_definition: fields.doc_to_text: …")
    assert line.endswith("end' here")
    assert len(line) < 250


def test_a_run_that_says_more_of_itself_is_another_run(tmp_path):
    write(tmp_path, manifest=make_manifest(temperature=1))
    with pytest.raises(RunError, match="temperature: 1 there, None here"):
        write(tmp_path)


def test_fresh_throws_away_the_old_recording_and_nothing_else(whole):
    mine = [whole / "notes.txt", whole / "rows" / "notes.txt", whole / "grades" / "mine.parquet"]
    for path in mine:
        path.parent.mkdir(exist_ok=True)
        path.write_text("mine")
    other = make_manifest(task="math")
    with RunWriter(whole) as writer:
        writer.start(other, "{}", fresh=True)
    assert len(open_run(whole)) == 0
    assert open_run(whole).task_name == "math"
    assert [path.read_text() for path in mine] == ["mine"] * 3


def test_a_missing_manifest_deletes_nothing(whole):
    before = {path: path.read_bytes() for path in sorted(whole.rglob("*.parquet"))}
    manifest = read_manifest(whole)
    (whole / "manifest.json").unlink()
    with RunWriter(whole) as writer, pytest.raises(RunError, match=r"but no manifest\.json"):
        writer.start(manifest, "{}")
    assert {path: path.read_bytes() for path in sorted(whole.rglob("*.parquet"))} == before
    with RunWriter(whole) as writer:
        writer.start(manifest, "{}", fresh=True)
    assert len(open_run(whole)) == 0


@pytest.mark.parametrize(
    ("version", "said"),
    [
        (0, "damaged manifest (0 is no format)"),
        (-1, "damaged manifest (-1 is no format)"),
        (True, "damaged manifest (True is no format)"),
        (1, "written by an earlier c4 (format 1, this one reads 3); record it again"),
        (2, "written by an earlier c4 (format 2, this one reads 3); record it again"),
        (99, "written by a newer c4 (format 99, this one reads 3); upgrade c4"),
    ],
)
def test_other_formats_are_refused_in_words_and_left_as_they_are(whole, version, said):
    write_manifest(whole, replace(MANIFEST, schema_version=version))
    before = snapshot(whole)
    with pytest.raises(RunError) as caught:
        open_run(whole)
    assert f"{whole / 'manifest.json'}: {said}" in str(caught.value)
    with RunWriter(whole) as writer, pytest.raises(RunError) as caught:
        writer.start(MANIFEST, "{}")
    assert said in str(caught.value)
    assert snapshot(whole) == before
    assert write(whole, fresh=True) == set(range(5))
    assert open_run(whole).manifest.schema_version == SCHEMA_VERSION


def test_a_part_says_whose_it_is(whole):
    digest = identity_digest(MANIFEST.identity)
    assert open_run(whole).manifest.digest == digest
    assert identity_digest(dict(reversed(MANIFEST.identity.items()))) == digest
    for kind in ("rows", "cells"):
        for part in list_parts(whole / kind):
            assert part.load(digest).file.schema_arrow.metadata[b"c4.run"] == digest.encode()


def test_a_part_that_names_no_run_is_refused(whole):
    part = list_parts(whole / "rows")[0]
    table = part.load().file.read()
    part.path.unlink()
    path = write_part(whole / "rows", table, part.trajectories, MANIFEST, {b"c4.run": b""}).path
    with pytest.raises(RunError, match=rf"{path.name}: belongs to another run \(it names none"):
        list(open_run(whole).rows())


@pytest.mark.parametrize("parts", [PARTS, PARTS[:1]], ids=["sealed", "partly pending"])
def test_a_run_without_cells_says_so_when_its_cells_are_asked_for(tmp_path, parts):
    write(tmp_path, parts=parts, manifest=make_manifest(cells=False))
    run = open_run(tmp_path)
    assert not run.has_cells
    assert list(run.rows()) == [make_row(i) for i in range(5)]
    assert {path.name for path in tmp_path.iterdir() if path.is_dir()} == {"rows", "pending"}
    for ask in (lambda: next(run.cells()), lambda: next(iter(run)), lambda: run.trajectory(4)):
        with pytest.raises(RunError, match=r"only results are kept here; .* c4 run --cells --task"):
            ask()


def test_a_run_says_what_it_is(whole, tmp_path):
    right = [make_row(i).correct for i in range(5)]
    assert repr(open_run(whole)) == f"<Run m gsm8k baseline, n=5, accuracy {sum(right) / 5:.1%}>"
    with RunWriter(tmp_path / "ungraded") as writer:
        writer.start(make_manifest(cells=False, method="c4", label="c4,H=2"), "{}")
        row = replace(make_row(0), answer=None, verdict=None, style=None, ending=None, grader=None)
        writer.add(row, None)
    assert repr(open_run(tmp_path / "ungraded")) == "<Run m gsm8k c4,H=2, n=1>"


def test_every_run_is_found_and_recordings_are_those_of_the_full_decode(tmp_path):
    sampler = {"label": "fast-dllm", "rule": {"name": "threshold", "tau": 0.9}}
    manifests = {
        "baseline": make_manifest(),
        "fast-dllm": make_manifest(method="fast-dllm", **sampler),
        "whole": make_manifest(label="whole"),
        "quick": make_manifest(cells=False, label="quick"),
    }
    folders = {label: run_folder(tmp_path, "m", "gsm8k", label) for label in manifests}
    for label, manifest in manifests.items():
        write(folders[label], manifest=manifest)
    assert find_runs(tmp_path) == find_runs(tmp_path / "model=m") == sorted(folders.values())
    found = [run.folder for run in find_recordings(tmp_path)]
    assert found == [folders["baseline"], folders["whole"]]
    for label, folder in folders.items():
        assert find_runs(folder) == [folder]
        (named,) = find_recordings(folder)
        assert named.method == label
        assert named.is_baseline == (label != "fast-dllm")


def test_a_run_that_cannot_be_read_harms_no_other(tmp_path, caplog):
    good, bad = (run_folder(tmp_path, "m", "gsm8k", label) for label in ("good", "bad"))
    write(good)
    write(bad, manifest=make_manifest(label="bad"))
    path = list_parts(bad / "rows")[0].path
    cut(path)
    assert [run.folder for run in find_recordings(tmp_path)] == [good]
    assert f"passed over: {path}: damaged" in caplog.text
    with pytest.raises(RunError, match=rf"{path.name}: damaged"):
        list(open_run(bad).rows())
    list_parts(good / "rows")[0].path.write_bytes(b"")
    with pytest.raises(RunError, match="damaged"):  # nothing is left that could be shown
        find_recordings(tmp_path)


def test_every_part_is_read_once_and_little_stays_in_memory(whole, monkeypatch):
    read = []
    monkeypatch.setattr(parts, "read_file", lambda path: read.append(path) or read_file(path))
    run = open_run(whole)
    for _ in range(2):
        assert len(run) == len(list(run.rows())) == len(list(run.cells())) == len(list(run))
    assert len(read) == len(set(read)) == 4
    monkeypatch.setattr(runs, "LOADED_BYTES", 1)
    run = open_run(whole)
    assert len(list(run)) == 5
    assert sum("data" in vars(part) for part in run.parts) == 0
