"""Looking at every file that a number can come from, damaged or of another run."""

import errno
import json
import shutil

import pyarrow as pa
import pytest
from made import (
    MANIFEST,
    PARTS,
    add_grade,
    cut,
    make_decode,
    make_manifest,
    make_row,
    make_run,
    problems,
    write,
)
from typer.testing import CliRunner

from c4.cli.app import app
from c4.errors import RunError
from c4.store import folders
from c4.store.check import Finding, State, check_run, check_timings, run_files
from c4.store.manifest import content_checksum, run_folder
from c4.store.parts import list_parts, run_parts, write_part
from c4.store.runs import open_run
from c4.store.timings import BENCH, read_timings, timings_folder, write_timings
from c4.store.writer import RunWriter
from c4.tasks import Verdict

KINDS = ("rows", "cells", "pending", "grades")


@pytest.fixture
def run(tmp_path):
    return make_run(tmp_path / "run")


@pytest.mark.parametrize("cells", [True, False])
def test_a_sound_run_has_every_file_looked_at_and_no_problem(tmp_path, cells):
    folder = make_run(tmp_path, make_manifest(cells))
    files = {path for path in folder.rglob("*") if path.is_file()}
    assert set(run_files(folder)) == files
    assert list(check_run(folder)) == [Finding(path) for path in run_files(folder)]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("harm", ["flip", "cut", "empty"])
def test_a_damaged_part_is_named_and_never_half_read(run, kind, harm):
    path = list_parts(run / kind)[0].path
    data = bytearray(path.read_bytes())
    if harm == "flip":
        data[len(data) // 2] ^= 1
    path.write_bytes({"flip": data, "cut": data[:-7], "empty": b""}[harm])
    (said,) = problems(run)
    assert f"{path}: damaged" in said
    assert len(list(check_run(run))) == len(run_files(run))
    with pytest.raises(RunError, match=rf"{path.name}: damaged"):
        list(open_run(run))
    if kind != "grades":  # each other part is unharmed
        assert open_run(run).trajectory(4).row == make_row(4)


@pytest.mark.parametrize("kind", KINDS)
def test_a_part_of_another_run_is_named_and_not_read(run, tmp_path, kind):
    other = make_run(tmp_path / "other", make_manifest(seed=1))
    foreign = list_parts(other / kind)[0].path
    list_parts(run / kind)[0].path.unlink()
    shutil.copy(foreign, run / kind)
    *_, said = problems(run)  # where cells were exchanged, rows lack theirs
    assert f"{run / kind / foreign.name}: belongs to another run" in said
    with pytest.raises(RunError, match=rf"{foreign.name}: belongs to another run"):
        list(open_run(run))
    if kind == "grades":
        with pytest.raises(RunError, match=rf"{foreign.name}: belongs to another run"):
            add_grade(run, 1, Verdict.RIGHT)
    else:  # each other part is the run's own
        assert open_run(run).trajectory(4).row == make_row(4)


def test_a_damaged_manifest_is_named(run):
    path = run / "manifest.json"
    path.write_bytes(path.read_bytes()[:-9])
    said, tokenizer = problems(run)
    assert f"{path}: damaged manifest" in said
    assert f"{run / 'tokenizer.json'}: cannot be judged without manifest.json" in tokenizer


def test_a_tokenizer_that_is_missing_beside_a_missing_manifest_is_named(run):
    (run / "manifest.json").unlink()
    (run / "tokenizer.json").unlink()
    assert f"{run / 'tokenizer.json'}: missing" in problems(run)


def test_a_lost_file_of_rows_is_a_problem_and_half_a_seal_is_none(run):
    (cells,) = list_parts(run / "cells")
    (rows,) = list_parts(run / "rows")
    rows.path.rename(run / "aside")
    (said,) = problems(run)
    assert f"{cells.path}: its rows are missing; bring them back" in said
    for index in PARTS[0]:
        with RunWriter(run) as writer:
            writer.go_on(MANIFEST)
            writer.add(*make_decode(index))
    states = {finding.path: finding.state for finding in check_run(run)}
    assert states[cells.path] is State.LEFTOVER
    assert write(run, parts=PARTS[:1]) == set()
    assert problems(run) == []


def test_of_cells_whose_rows_are_damaged_nothing_is_said(run):
    (cells,), (rows,) = list_parts(run / "cells"), list_parts(run / "rows")
    rows.path.write_bytes(b"")
    states = {finding.path: finding.state for finding in check_run(run)}
    assert (states[rows.path], states[cells.path]) == (State.PROBLEM, State.SOUND)


@pytest.mark.parametrize("at", range(8))
def test_a_check_beside_a_process_that_records_finds_no_false_damage(tmp_path, monkeypatch, at):
    """The rest is sealed after any of the files was looked at, or before the first."""
    write(tmp_path, parts=PARTS[:1])
    listed = 0
    real = folders.os.scandir

    def seals_meanwhile(folder):
        nonlocal listed
        listed += 1
        if listed == at + 1:
            write(tmp_path, parts=PARTS)
        return real(folder)

    findings = check_run(tmp_path)
    looked = [next(findings), next(findings)]  # manifest and tokenizer
    monkeypatch.setattr(folders.os, "scandir", seals_meanwhile)
    looked += findings
    assert listed > at
    assert [finding.what for finding in looked if finding.state is not State.SOUND] == []
    assert {part.path for part in run_parts(tmp_path)} <= {finding.path for finding in looked}


@pytest.mark.parametrize("seen", range(2, 7))
def test_what_is_sealed_while_a_check_reads_is_looked_at_where_it_went(tmp_path, seen):
    write(tmp_path, parts=PARTS[:1])
    findings = check_run(tmp_path)
    looked = [next(findings) for _ in range(seen)]
    write(tmp_path, parts=PARTS)
    looked += findings
    assert [finding.what for finding in looked if finding.state is not State.SOUND] == []
    assert {part.path for part in run_parts(tmp_path)} <= {finding.path for finding in looked}


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


@pytest.mark.parametrize(("model", "task"), [("llada", "gsm8k"), ("m", "math"), ("llada", "math")])
def test_timings_in_the_folder_of_another_model_or_task_are_refused(tmp_path, model, task):
    path = keep_timings(tmp_path)
    moved = timings_folder(tmp_path, model, task) / path.name
    moved.parent.mkdir(parents=True)
    moved.write_bytes(path.read_bytes())
    with pytest.raises(RunError, match=rf"{path.name}: timings of m on gsm8k, which belong in"):
        read_timings(tmp_path)
    problem = [found for found in check_timings(tmp_path) if found.state is State.PROBLEM]
    assert [found.path for found in problem] == [moved]


def test_the_newest_timing_is_the_last_one_written_though_the_clock_was_set_back(tmp_path):
    first = keep_timings(tmp_path, mean_seconds=1.0)
    ahead = first.rename(first.with_name("29991231T235959999999" + first.name[21:]))
    for seconds in (2.0, 3.0):
        keep_timings(tmp_path, mean_seconds=seconds)
        assert read_timings(tmp_path)["mean_seconds"].to_pylist() == [seconds]
    assert [found.state for found in check_timings(tmp_path)] == [State.SOUND] * 3
    assert ahead.exists()


def test_any_flipped_byte_of_a_timing_is_noticed_and_its_file_named(tmp_path):
    path, other = keep_timings(tmp_path), keep_timings(tmp_path)
    data = path.read_bytes()
    for at in range(0, len(data), 97):
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
    files = sum(len(run_files(folder)) for folder in folders) + 1
    assert said == f"no damage in {files} files of 2 runs"
    damaged = [timing, *(list_parts(folders[0] / kind)[0].path for kind in KINDS)]
    damaged.append(list_parts(folders[1] / "rows")[0].path)
    for path in damaged:
        cut(path)
    code, said, errors = check_below(tmp_path)
    assert code == 2
    assert "no damage" not in said
    for path in damaged:
        assert f"{path.name}: damaged" in errors


def test_a_damaged_baseline_hides_no_other_run_from_the_list(tmp_path):
    broken = make_run(run_folder(tmp_path, "m", "gsm8k", "baseline"))
    make_run(run_folder(tmp_path, "m", "gsm8k", "quick"), make_manifest(cells=False, label="quick"))
    path = list_parts(broken / "rows")[0].path
    cut(path)
    result = CliRunner().invoke(app, ["runs", "--runs", str(tmp_path), "--json"])
    assert result.exit_code == 2
    assert '"method": "quick"' in result.stdout
    assert f"{path.name}: damaged" in result.stderr.replace("\n", "")


@pytest.mark.parametrize(
    "wrong",
    [
        *({"mean_seconds": float("nan")}, {"cv": -1.0}, {"tps": float("inf")}, {"n": 0}),
        *({"passes": -1}, {"threads": 0}, {"length": 0}, {"speedup": float("nan")}),
        *({"identity": text} for text in ("", "[", "3", "{}", "[" * 100_000)),
    ],
    ids=lambda wrong: str(wrong)[:40],
)
def test_timings_that_no_clock_gives_are_named(tmp_path, wrong):
    path = keep_timings(tmp_path, **wrong)
    with pytest.raises(RunError, match=rf"{path.name}: cannot be read .*c4 bench"):
        read_timings(tmp_path)
    (found,) = check_timings(tmp_path)
    assert (found.path, found.state) == (path, State.PROBLEM)


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
    assert said.endswith(f"no damage in {len(run_files(folder)) - 2} files of 1 run")
    result = CliRunner().invoke(app, ["runs", "--runs", str(tmp_path), "--check", "--json"])
    found = json.loads(result.stdout)
    assert (found["runs"], found["problems"], len(found["foreign"])) == (1, [], 1)


def test_a_folder_without_anything_is_not_said_to_be_sound(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # or calibrations beside the tests would be found
    (tmp_path / "empty").mkdir()
    for name, why in (("empty", "nothing to check below"), ("mistyped", "no such folder")):
        code, said, errors = check_below(tmp_path / name)
        assert (code, said) == (2, "")
        assert why in errors


@pytest.mark.parametrize("kind", [*KINDS, "signals"])
def test_a_file_that_cannot_be_read_is_never_sound(run, kind, monkeypatch):
    """A disk that fails while a file is read."""
    if kind == "signals":
        part = list_parts(run / "rows")[0]
        table = part.load().file.read()
        write_part(run / "signals", table, part.trajectories, MANIFEST)
    path = list_parts(run / kind)[0].path
    real = folders.Path.open

    def fails(self, *args, **kwargs):
        if self == path:
            raise OSError(errno.EIO, "Input/output error")
        return real(self, *args, **kwargs)

    monkeypatch.setattr(folders.Path, "open", fails)
    (said,) = problems(run)
    assert f"{path}: cannot be read (Input/output error)" in said


def test_a_calibration_is_checked_beside_the_runs(tmp_path, monkeypatch):
    make_run(run_folder(tmp_path / "runs", "m", "gsm8k", "baseline"))
    content = {
        "gate": "cvee",
        "parameters": {"tau": 0.6},
        "reading": {"style": "careful", "ending": "cut", "grader": "exact"},
        "statement": "x",
        "pool": [{"identity": make_manifest().identity, "trajectories": [0]}],
        "seconds": 1.0,
        "table": [{"tau": 0.6, "worst_drop": 0.0}],
    }
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
        path.write_text(json.dumps(content).replace("gate", "gatd"))
        assert "mine.json" in check_below("runs")[2]
        path.unlink()
