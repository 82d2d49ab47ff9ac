"""A run that has lost its manifest or its tokenizer, and files that are none of c4's."""

import itertools
import json
import shutil

import pytest
from made import MANIFEST, cut, make_manifest, make_run, problems, snapshot, write
from typer.testing import CliRunner

from c4.cli.app import app
from c4.errors import RunError
from c4.store import repair as repair_module
from c4.store.check import State, check_run
from c4.store.manifest import content_checksum, read_manifest
from c4.store.parts import list_parts
from c4.store.repair import repair_run
from c4.store.runs import find_runs, open_run

HARMS = ("missing", "cut", "flipped", "version", "empty", "nested", "latin")
FOLDERS = ("rows", "cells", "pending", "grades", "signals")


@pytest.fixture
def run(tmp_path):
    return make_run(tmp_path / "method=run")


def edit_manifest(folder, **changes):
    """Change a manifest by hand, its checksum included."""
    content = json.loads((folder / "manifest.json").read_text())
    content.pop("checksum")
    for name, value in changes.items():
        content[name] = value
    content["checksum"] = content_checksum(content)
    (folder / "manifest.json").write_text(json.dumps(content))


@pytest.mark.parametrize(
    ("harm", "cells"), [*((harm, True) for harm in HARMS), ("missing", False)], ids=str
)
def test_a_manifest_is_rebuilt_from_the_parts(tmp_path, harm, cells):
    run = make_run(tmp_path / "method=run", make_manifest(cells))
    before, rows = snapshot(run), list(open_run(run).rows())
    path = run / "manifest.json"
    data = path.read_bytes()
    harmed = {
        "cut": data[:-20],
        "flipped": data.replace(b'"seed": 0', b'"seed": 1'),
        "version": data.replace(b'"schema_version": 3', b'"schema_version": 7'),
        "empty": b"",
        "nested": b"[" * 100_000,
        "latin": b"\xff\xfe",
    }
    if harm == "missing":
        path.unlink()
    else:
        path.write_bytes(harmed[harm])
    with pytest.raises(RunError, match=r"c4 runs --repair '.*method=run'"):
        open_run(run)
    repair = repair_run(run)
    assert (len(repair.done), repair.remaining) == (1, [])
    after = snapshot(run)
    assert before.keys() == after.keys()
    assert {k for k in before if before[k] != after[k]} <= {"manifest.json"}
    assert read_manifest(run).identity == open_run(run).manifest.identity
    assert list(open_run(run).rows()) == rows
    assert problems(run) == []
    assert repair_run(run).done == []


@pytest.mark.parametrize("kept", ["rows", "cells", "pending", "grades"])
def test_any_part_alone_knows_the_whole_identity(tmp_path, kept):
    run = make_run(tmp_path)
    identity = read_manifest(run).identity
    (run / "manifest.json").unlink()
    for name in {"rows", "cells", "pending", "grades"} - {kept}:
        shutil.rmtree(run / name)
    repair_run(run)
    manifest = read_manifest(run)
    assert manifest.identity == identity
    assert manifest.environment == {"python": "3", "libraries": {"c4-dlm": "1"}}
    assert manifest.tokenizer_file_sha256 == MANIFEST.tokenizer_file_sha256


def test_recording_without_a_manifest_is_refused_and_goes_on_after_the_repair(run):
    expected = snapshot(run)
    manifest = read_manifest(run)
    (run / "manifest.json").unlink()
    with pytest.raises(RunError, match="c4 runs --repair"):
        write(run, manifest=manifest)
    assert snapshot(run).items() < expected.items()
    repair_run(run)
    assert write(run, manifest=manifest) == set()
    assert open_run(run).indices == [0, 1, 2, 3, 4]


def test_a_run_without_a_manifest_is_found_and_said_to_be_one(run, tmp_path):
    (run / "manifest.json").unlink()
    assert find_runs(tmp_path) == [run]
    for args in ([], ["--check"]):
        result = CliRunner().invoke(app, ["runs", "--runs", str(tmp_path), *args])
        assert result.exit_code == 2
        assert "c4 runs --repair" in " ".join(result.stderr.split())


def test_what_cannot_be_repaired_is_said(run):
    (run / "manifest.json").unlink()
    (run / "tokenizer.json").unlink()
    part = list_parts(run / "pending")[0].path
    cut(part)
    result = CliRunner().invoke(app, ["runs", "--repair", str(run)])
    assert result.exit_code == 2
    said = result.stderr.replace("\n", "")
    assert f"{part.name}: damaged" in said
    assert "tokenizer.json: missing" in said
    assert MANIFEST.tokenizer_file_sha256 in said
    assert len(list_parts(run / "rows")) == 1
    assert [row.trajectory for row in open_run(run).read_rows(open_run(run).parts[0])] == [0, 1, 2]


def test_the_tokenizer_comes_back_with_the_next_recording(run):
    expected = snapshot(run)
    (run / "tokenizer.json").unlink()
    write(run, parts=[], manifest=read_manifest(run))
    assert snapshot(run) == expected


def test_parts_of_two_runs_are_named_and_nothing_is_touched(tmp_path):
    run, other = make_run(tmp_path / "a"), make_run(tmp_path / "b", make_manifest(seed=7))
    (run / "manifest.json").unlink()
    foreign = list_parts(other / "pending")[1].path
    shutil.copy(foreign, run / "pending")
    before = snapshot(run)
    with pytest.raises(RunError) as refused:
        repair_run(run)
    said = str(refused.value)
    assert "parts of several runs" in said
    assert f"pending/{foreign.name} (there)" in said
    assert "seed: 7 there, 0 here" in said
    assert snapshot(run) == before


def test_a_stranger_beside_a_sound_manifest_is_named(tmp_path):
    run, other = make_run(tmp_path / "a"), make_run(tmp_path / "b", make_manifest(seed=7))
    foreign = list_parts(other / "grades")[0].path
    shutil.copy(foreign, run / "grades")
    repair = repair_run(run)
    assert repair.done == []
    assert f"{foreign.name}: belongs to another run" in repair.remaining[0]


@pytest.mark.parametrize("holds", ["nothing", "a sound run", "no sound part"])
def test_looking_at_a_folder_that_is_not_repaired_leaves_no_trace(tmp_path, holds, monkeypatch):
    """It may be the wrong folder, or one that cannot be written."""
    if holds != "nothing":
        make_run(tmp_path)
    if holds == "no sound part":
        for path in [*tmp_path.rglob("*.parquet"), tmp_path / "manifest.json"]:
            path.write_bytes(b"")
    before = set(tmp_path.rglob("*"))
    with monkeypatch.context() as read_only:
        read_only.setattr(repair_module, "Claims", None)  # would fail if it were called
        if holds == "a sound run":
            assert (repair_run(tmp_path).done, repair_run(tmp_path).remaining) == ([], [])
        else:
            with pytest.raises(RunError, match="no part here says what the run was"):
                repair_run(tmp_path)
    assert set(tmp_path.rglob("*")) == before
    with pytest.raises(RunError, match="no such folder"):
        repair_run(tmp_path / "nowhere")


def test_a_run_of_a_newer_format_is_left_as_it_is(run):
    edit_manifest(run, schema_version=99)
    before = snapshot(run)
    with pytest.raises(RunError, match="written by a newer c4"):
        repair_run(run)
    assert snapshot(run) == before


OWN = ["notes.txt", "mine.parquet", "manifest.json", "000000-000001.parquet", "x.0123abcd.tmp"]


@pytest.mark.parametrize("fresh", [False, True], ids=["goes on", "fresh"])
def test_a_user_s_own_files_survive_everything(run, fresh):
    mine = [run / folder / name for folder in FOLDERS for name in OWN]
    mine += [run / "notes.txt", run / "own" / "notes.txt"]
    for path in mine:
        path.parent.mkdir(exist_ok=True)
        path.write_text("mine")
    manifest = read_manifest(run)
    write(run, manifest=manifest, fresh=fresh)
    (run / "manifest.json").unlink()
    repair_run(run)
    write(run, manifest=manifest)
    assert [path.read_text() for path in mine] == ["mine"] * len(mine)
    found = {finding.path: finding.state for finding in check_run(run)}
    listed = [run / "own" if path.parent.name == "own" else path for path in mine]
    for path in listed:
        wanted = State.LEFTOVER if path.suffix == ".tmp" else State.FOREIGN
        assert found[path] is wanted, path


def test_fresh_deletes_nothing_that_it_cannot_vouch_for(run):
    mine = run / "grades" / "000000-000002.deadbeef.parquet"
    mine.write_text("mine, under a name like c4's")
    before = snapshot(run)
    with pytest.raises(RunError, match=r"deadbeef\.parquet: damaged .*\n--fresh throws away only"):
        write(run, manifest=read_manifest(run), fresh=True)
    assert snapshot(run) == before


@pytest.mark.parametrize(
    ("kind", "fresh"),
    [*itertools.product(("rows", "cells", "pending"), (False, True)), ("grades", True)],
)
def test_no_part_of_another_run_is_deleted(tmp_path, kind, fresh):
    run, other = make_run(tmp_path / "a"), make_run(tmp_path / "b", make_manifest(seed=7))
    shutil.copy(list_parts(other / kind)[0].path, run / kind)
    before = snapshot(run)
    said = "files of 2 runs" if fresh else r"belongs to another run|holds trajectories that"
    with pytest.raises(RunError, match=said):
        write(run, fresh=fresh)
    assert snapshot(run).items() >= before.items()


IDENTITY = MANIFEST.identity


@pytest.mark.parametrize(
    "changes",
    [
        {"identity": []},
        {"identity": {}},
        {"identity": IDENTITY | {"shape": {"length": 6}}},
        {"identity": IDENTITY | {"shape": {"length": "6", "budget": 6, "block_length": 3}}},
        {"identity": IDENTITY | {"shape": {"length": 6, "budget": 5, "block_length": 3}}},
        {"identity": IDENTITY | {"cells": "yes"}},
        {"identity": IDENTITY | {"end_ids": [1.5]}},
        {"identity": IDENTITY | {"vocab_size": True}},
        {"identity": IDENTITY | {"forward": {}}},
        {"identity": IDENTITY | {"gate": {"reading": {"style": "loud", "ending": "cut"}}}},
        {"identity": IDENTITY | {"gate": {"reading": 3}}},
        {"identity": {k: v for k, v in IDENTITY.items() if k != "label"}},
        {"extra": 1},
        {"schema_version": 3.0},
        {"schema_version": None},
        {"schema_version": False},
    ],
    ids=str,
)
def test_a_manifest_that_cannot_be_meant_is_refused_in_words(run, changes):
    edit_manifest(run, **changes)
    with pytest.raises(RunError, match=r"manifest\.json: damaged manifest"):
        open_run(run)
    assert any("damaged manifest" in what for what in problems(run))
