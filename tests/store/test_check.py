"""Looking at every file that a number can come from, damaged or of another run."""

import errno
import json
import shutil
from dataclasses import replace

import pyarrow as pa
import pytest
from made import MANIFEST, PARTS, make_cells, make_manifest, make_row, write
from typer.testing import CliRunner

from c4.cli._app import app
from c4.errors import RunError
from c4.store import storage
from c4.store.check import Finding, State, check_run, check_timings, run_files
from c4.store.manifest import content_checksum, run_folder
from c4.store.parts import Stamp, list_parts, open_part, write_part
from c4.store.schema import BENCH
from c4.store.timings import read_timings, write_timings
from c4.store.writer import Decode, RunWriter
from c4.tasks import AnswerReading, Grade, Verdict

KINDS = ("rows", "cells", "pending", "grades")


def make_run(folder, manifest=MANIFEST):
    """A run with a file of every kind: three trajectories are sealed, two pending, one regraded."""
    write(folder, parts=PARTS[:1], manifest=manifest)
    with RunWriter(folder) as writer:
        writer.go_on(manifest)
        writer.add_grades({1: Grade("8", Verdict.WRONG)}, AnswerReading())
    return folder


@pytest.fixture
def run(tmp_path):
    return make_run(tmp_path / "run")


def problems(folder):
    """What is wrong with a run, one line for each file that is."""
    return [finding.what for finding in check_run(folder) if finding.state is State.PROBLEM]


@pytest.mark.parametrize("cells", [True, False])
def test_a_sound_run_has_every_file_looked_at_and_no_problem(tmp_path, cells):
    folder = make_run(tmp_path, make_manifest(cells))
    files = {path for path in folder.rglob("*") if path.is_file() and path.name != "lock"}
    assert set(run_files(folder)) == files
    assert list(check_run(folder)) == [Finding(path) for path in run_files(folder)]


@pytest.mark.parametrize("kind", KINDS)
def test_a_damaged_part_is_named_and_the_rest_is_looked_at_all_the_same(run, kind):
    path = list_parts(run / kind)[0].path
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    (said,) = problems(run)
    assert f"{path}: damaged" in said
    assert len(list(check_run(run))) == len(run_files(run))


def test_all_that_is_damaged_is_named(run):
    paths = [list_parts(run / kind)[0].path for kind in KINDS]
    for path in [*paths, run / "tokenizer.json"]:
        path.write_bytes(path.read_bytes()[:-1])
    said = problems(run)
    assert [line.partition(":")[0] for line in said] == [
        str(path) for path in (run / "tokenizer.json", *paths)
    ]


@pytest.mark.parametrize("kind", KINDS)
def test_a_part_of_another_run_is_named(run, tmp_path, kind):
    other = make_run(tmp_path / "other", make_manifest(seed=1))
    foreign = list_parts(other / kind)[0].path
    list_parts(run / kind)[0].path.unlink()
    shutil.copy(foreign, run / kind)
    *_, said = problems(run)  # where cells were exchanged, rows lack theirs
    assert f"{run / kind / foreign.name}: belongs to another run" in said


@pytest.mark.parametrize("other", [False, True], ids=["the same", "another"])
@pytest.mark.parametrize("number", [1, 3], ids=["sealed", "pending"])
def test_a_second_copy_of_a_trajectory_must_be_the_same_decode(run, number, other):
    """Wall times and grades aside."""
    row = replace(make_row(number), wall_seconds=9.0, verdict=None)
    if other:
        row = replace(row, final_ids=[5, 4, 3, 2, 1, 0])
    with RunWriter(run) as writer:
        writer.go_on(MANIFEST)
        writer.add(Decode(row, make_cells(number)))
    said = problems(run)
    assert len(said) == other
    assert all(f"another decode of trajectory {number} than" in what for what in said)


def test_a_damaged_manifest_is_named(run):
    path = run / "manifest.json"
    path.write_bytes(path.read_bytes()[:-9])
    (said,) = problems(run)
    assert f"{path}: damaged manifest" in said


def test_a_part_whose_name_vouches_for_what_is_no_parquet_is_named(run):
    path = run / "rows" / "000005-000005.3610a686.parquet"
    path.write_bytes(b"hello")  # whose CRC-32 that is
    (said,) = problems(run)
    assert f"{path}: cannot be read" in said


def keep_timings(root, **changes):
    values = {"string": "x", "int32": 2, "double": 1.5}
    row = {field.name: values[str(field.type)] for field in BENCH}
    row["identity"] = json.dumps(MANIFEST.identity)
    table = pa.Table.from_pylist([row | changes], schema=BENCH)
    return write_timings(root, "m", "gsm8k", table)


def test_sound_timings_are_no_problem(tmp_path):
    paths = [keep_timings(tmp_path), keep_timings(tmp_path, method="c4")]
    assert list(check_timings(tmp_path)) == [Finding(path) for path in paths]
    assert read_timings(tmp_path)["method"].to_pylist() == ["x", "c4"]


def test_any_flipped_byte_of_a_timing_is_noticed_and_its_file_named(tmp_path):
    path, other = keep_timings(tmp_path), keep_timings(tmp_path)
    data = path.read_bytes()
    for at in range(0, len(data), 37):
        path.write_bytes(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])
        damaged, sound = check_timings(tmp_path)
        assert f"{path}: damaged" in damaged.what
        assert sound == Finding(other)


def check_below(root):
    """What `c4 runs --check` prints: its exit code, its output and its errors in one line each."""
    result = CliRunner().invoke(app, ["runs", "--runs", str(root), "--check"])
    return result.exit_code, *(text.replace("\n", "") for text in (result.stdout, result.stderr))


def test_the_command_names_damaged_rows_cells_grades_and_timings(tmp_path):
    folders = [run_folder(tmp_path, "m", "gsm8k", label) for label in ("baseline", "quick")]
    make_run(folders[0])
    make_run(folders[1], make_manifest(cells=False, label="quick"))
    timing = keep_timings(tmp_path)
    code, said, _ = check_below(tmp_path)
    assert code == 0
    assert "every file of 2 runs is sound" in said
    damaged = [timing, *(list_parts(folders[0] / kind)[0].path for kind in KINDS)]
    damaged.append(list_parts(folders[1] / "rows")[0].path)
    for path in damaged:
        path.write_bytes(path.read_bytes()[:-1])
    code, said, errors = check_below(tmp_path)
    assert code == 2
    assert "sound" not in said
    for path in damaged:
        assert f"{path.name}: damaged" in errors


def test_a_damaged_baseline_hides_no_other_run_from_the_list(tmp_path):
    broken = make_run(run_folder(tmp_path, "m", "gsm8k", "baseline"))
    make_run(run_folder(tmp_path, "m", "gsm8k", "quick"), make_manifest(cells=False, label="quick"))
    path = list_parts(broken / "rows")[0].path
    path.write_bytes(path.read_bytes()[:-1])
    result = CliRunner().invoke(app, ["runs", "--runs", str(tmp_path), "--json"])
    assert result.exit_code == 2
    assert '"method": "quick"' in result.stdout
    assert f"{path.name}: damaged" in result.stderr.replace("\n", "")


TIMED = {
    "mean_seconds": float("nan"),
    "cv": -1.0,
    "tps": float("inf"),
    "n": 0,
    "passes": -1,
    "threads": 0,
    "length": 0,
    "identity": "{}",
    "speedup": float("nan"),
}


@pytest.mark.parametrize("name", TIMED)
def test_timings_that_no_clock_gives_are_named(tmp_path, name):
    path = keep_timings(tmp_path, **{name: TIMED[name]})
    with pytest.raises(RunError, match=rf"{path.name}: cannot be read .*c4 bench"):
        read_timings(tmp_path)
    (found,) = check_timings(tmp_path)
    assert (found.path, found.state) == (path, State.PROBLEM)


@pytest.mark.parametrize("identity", ["", "[", "3", "[" * 100_000])
def test_timings_of_no_identity_are_named(tmp_path, identity):
    path = keep_timings(tmp_path, identity=identity)
    with pytest.raises(RunError, match=rf"{path.name}: cannot be read"):
        read_timings(tmp_path)


def test_what_is_no_timing_is_left_alone_and_listed(tmp_path):
    path = keep_timings(tmp_path)
    own = path.with_name("mine.parquet")
    own.write_text("mine")
    left = path.with_name(f"{path.name}.0123abcd.tmp")
    left.write_text("half")
    states = {finding.path: finding.state for finding in check_timings(tmp_path)}
    assert states == {path: State.SOUND, own: State.FOREIGN, left: State.LEFTOVER}
    keep_timings(tmp_path, method="c4")
    assert own.exists()
    assert not left.exists()
    assert read_timings(tmp_path)["method"].to_pylist() == ["x", "c4"]


def test_the_command_lists_leftovers_and_foreign_files_and_both_are_no_error(tmp_path):
    folder = make_run(run_folder(tmp_path, "m", "gsm8k", "baseline"))
    left = folder / "rows" / "000003-000004.00000000.parquet.0123abcd.tmp"
    mine = folder / "cells" / "notes.txt"
    for path in (left, mine):
        path.write_text("x")
    code, said, _ = check_below(tmp_path)
    assert code == 0
    assert f"{left.name}: left by a process that was killed" in said
    assert f"{mine.name}: not written by c4" in said
    result = CliRunner().invoke(app, ["runs", "--runs", str(tmp_path), "--check", "--json"])
    found = json.loads(result.stdout)
    assert (found["runs"], found["problems"], len(found["foreign"])) == (1, [], 1)


def test_a_folder_without_anything_is_not_said_to_be_sound(tmp_path):
    code, said, errors = check_below(tmp_path / "mistyped")
    assert (code, said) == (2, "")
    assert "nothing to check below" in errors


@pytest.mark.parametrize("kind", [*KINDS, "signals"])
def test_a_file_that_cannot_be_read_is_never_sound(run, kind, monkeypatch):
    """A disk that fails while a file is read."""
    if kind == "signals":
        part = list_parts(run / "rows")[0]
        table = open_part(part).read()
        write_part(run / "signals", table, part.trajectories, Stamp.of(MANIFEST))
    path = list_parts(run / kind)[0].path
    real = storage.Path.open

    def fails(self, *args, **kwargs):
        if self == path:
            raise OSError(errno.EIO, "Input/output error")
        return real(self, *args, **kwargs)

    monkeypatch.setattr(storage.Path, "open", fails)
    (said,) = problems(run)
    assert f"{path}: cannot be read (Input/output error)" in said


@pytest.mark.parametrize("kind", ["cells", "pending"])
def test_what_is_sealed_away_during_a_check_is_no_problem(run, kind):
    """A pending file may go while others are read; nothing else may."""
    gone = list_parts(run / kind)[-1].path
    findings = check_run(run)
    found = [next(findings) for _ in range(3)]  # the manifest, the tokenizer, the first rows
    gone.unlink()
    found += findings
    wrong = [finding.what for finding in found if finding.state is State.PROBLEM]
    assert wrong == ([f"{gone}: gone while it was being checked"] if kind == "cells" else [])


def test_a_calibration_is_checked_beside_the_runs(tmp_path, monkeypatch):
    make_run(run_folder(tmp_path / "runs", "m", "gsm8k", "baseline"))
    content = {"gate": "cvee", "parameters": {"tau": 0.6}, "statement": "x", "pool": []}
    content |= {"reading": {"style": "careful", "ending": "cut", "grader": "exact"}}
    content["checksum"] = content_checksum(content)
    for place in ("runs", "."):
        path = tmp_path / place / "mine.json"
        monkeypatch.chdir(tmp_path)
        path.write_text(json.dumps(content))
        assert check_below("runs")[0] == 0
        path.write_text(json.dumps(content).replace("0.6", "0.5"))
        code, _, errors = check_below("runs")
        assert code == 2
        assert "mine.json: edited or damaged since `c4 calibrate` wrote it" in errors
        path.unlink()
