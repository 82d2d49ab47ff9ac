"""What a machine can do to a recording, at the level of files."""

import errno
import os
import shutil
import signal
from dataclasses import asdict, fields, replace

import numpy as np
import pytest
from conftest import byte_tokenizer

from c4.errors import RunError
from c4.record import CELLS, TRAJECTORIES, Cells, Manifest, TrajectoryRow, open_run
from c4.record import _format as format_module
from c4.record._cells import CELLS_PER_PART, SIGNALS, cells_to_table, encode_table
from c4.record._decode import RESOLUTION, fixed_point
from c4.record._format import (
    list_parts,
    open_part,
    read_manifest,
    text_hash,
    write_manifest,
    write_part,
    write_tokenizer,
)
from c4.record._store import Finished, RunWriter, plan_parts
from c4.tasks import AnswerReading, Ending, Grade, ReadingStyle, Shape

SHAPE = Shape(length=6, steps=6, block=3)
MANIFEST = Manifest(
    identity={"task": "gsm8k", "model": "m", "shape": vars(SHAPE), "end_ids": [], "source": "x"},
    environment={},
    tokenizer_file_sha256=text_hash("{}"),
)


def make_cells(seed, shape=SHAPE):
    rng = np.random.default_rng(seed)
    size = (shape.steps, shape.length)
    signals = {name: fixed_point(name, rng.random(size, dtype=np.float32)) for name in RESOLUTION}
    return Cells(
        token=rng.integers(0, 1000, size, dtype=np.int32), masked=rng.random(size) < 0.5, **signals
    )


def make_row(index, shape=SHAPE):
    return TrajectoryRow(
        trajectory=index,
        source_row=index + 100,
        prompt=f"problem {index}, “quoted”",
        prompt_ids=[1, 2, index],
        target="7",
        preamble="",
        tests="",
        choices=["red", "blue"],
        final_ids=list(range(shape.length)),
        text="text",
        answer=None if index % 2 else "7",
        correct=bool(index % 3),
        **asdict(AnswerReading()),
        length=shape.length,
        steps=shape.steps,
        block=shape.block,
        forward_passes=shape.steps,
        tokens_before_end=4,
        wall_seconds=0.125 * index,
    )


def write(folder, indices, parts, fresh=False):
    """What a recording does, without a model. Returns the trajectories it had to make."""
    with RunWriter(folder) as writer:
        writer.start(MANIFEST, "{}", fresh=fresh)
        todo = set(indices) - writer.sealed - writer.pending.keys()
        for index in sorted(todo):
            writer.add(Finished(make_row(index), make_cells(index)))
        for part in parts:
            writer.seal(part)
    return todo


def snapshot(folder):
    """Every file that matters, by name and bytes."""
    paths = (path for path in folder.rglob("*") if path.is_file() and path.name != "lock")
    return {str(path.relative_to(folder)): path.read_bytes() for path in paths}


PARTS = [range(0, 3), range(3, 5)]


@pytest.fixture
def whole(tmp_path):
    write(tmp_path / "whole", range(5), PARTS)
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


def test_arrays_are_views_of_what_arrow_decoded(whole):
    cells = open_run(whole).trajectory(1).cells
    for name in ("token", "confidence", "gap", "entropy"):
        assert getattr(cells, name).base is not None
        assert not getattr(cells, name).flags.owndata


def test_pending_trajectories_can_be_read_before_their_part_is_full(tmp_path):
    write(tmp_path / "run", range(4), PARTS[:1])
    run = open_run(tmp_path / "run")
    assert run.indices == [0, 1, 2, 3]
    assert [t.row.trajectory for t in run] == [0, 1, 2, 3]
    assert_same(run, 3)


def test_rows_have_the_schema_s_columns_in_its_order():
    assert [field.name for field in fields(TrajectoryRow)] == TRAJECTORIES.names


def test_the_schema_of_the_cells_is_frozen():
    assert [(f.name, str(f.type), f.nullable) for f in CELLS] == [
        ("trajectory", "int32", False),
        ("step", "int16", False),
        ("position", "int16", False),
        ("token", "int32", False),
        ("confidence", "float", False),
        ("gap", "float", False),
        ("entropy", "float", False),
        ("masked", "bool", False),
    ]


def test_cells_are_stored_position_by_position():
    table = cells_to_table(3, make_cells(0)).to_pydict()
    assert table["position"][:7] == [0] * 6 + [1]
    assert table["step"][:7] == [1, 2, 3, 4, 5, 6, 1]
    assert set(table["trajectory"]) == {3}


@pytest.mark.parametrize("indices", [range(100), [*range(10), *range(50, 60)], [7]])
def test_parts_cover_everything_once_without_gaps_inside(indices):
    parts = plan_parts(indices, Shape(length=96, steps=96, block=12))
    assert [i for part in parts for i in part] == sorted(indices)
    assert max(len(part) for part in parts) <= CELLS_PER_PART // 96**2


def test_a_trajectory_larger_than_a_part_has_one_of_its_own():
    huge = Shape(length=1024, steps=1024, block=1024)
    assert plan_parts(range(3), huge) == [range(0, 1), range(1, 2), range(2, 3)]


def in_a_child_that_dies_at(event, job):
    """Run the job in a forked process that kills itself, unannounced, at its n-th file event.

    Returns whether the job got to its end first.
    """
    pid = os.fork()
    if pid == 0:
        seen = 0

        def count(name, args):
            nonlocal seen
            if name in ("os.rename", "os.remove", "os.rmdir", "open", "os.mkdir"):
                seen += 1
                if seen == event:
                    os.kill(os.getpid(), signal.SIGKILL)

        import sys

        sys.addaudithook(count)
        job()
        os._exit(0)
    _, status = os.waitpid(pid, 0)
    return os.waitstatus_to_exitcode(status) == 0


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_killed_at_any_instant_it_resumes_to_the_same_bytes(tmp_path, whole):
    """Every file operation is a place to die; after each, one more session ends as if unharmed."""
    expected = snapshot(whole)
    survived = False
    event = 0
    while not survived:
        event += 1
        folder = tmp_path / f"killed-{event}"
        survived = in_a_child_that_dies_at(event, lambda f=folder: write(f, range(5), PARTS))
        finished = finished_trajectories(folder)
        made = write(folder, range(5), PARTS)
        assert made == set(range(5)) - finished, f"killed at event {event}"
        assert snapshot(folder) == expected, f"killed at event {event}"
    assert event > 20


def finished_trajectories(folder):
    """Those that are safe: readable by whoever opens the run now."""
    if not (folder / "manifest.json").exists():
        return set()
    run = open_run(folder)
    for index in run.indices:
        assert_same(run, index)
    return set(run.indices)


@pytest.mark.parametrize("kind", ["cells", "trajectories"])
@pytest.mark.parametrize("harm", ["truncate", "flip", "empty"])
def test_a_damaged_file_is_reported_by_name_and_never_half_read(whole, kind, harm):
    path = list_parts(whole / kind)[0].path
    data = bytearray(path.read_bytes())
    if harm == "flip":
        data[len(data) // 2] ^= 0b100
    path.write_bytes({"truncate": data[:-7], "flip": data, "empty": b""}[harm])
    with pytest.raises(RunError, match=rf"{path.name}: damaged"):
        list(open_run(whole))
    assert_same(open_run(whole), 4)  # the other part is unharmed


def test_any_flipped_byte_is_noticed(whole):
    part = list_parts(whole / "cells")[1]
    data = part.path.read_bytes()
    for at in range(0, len(data), 7):
        part.path.write_bytes(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])
        with pytest.raises(RunError, match="damaged"):
            open_part(part)


@pytest.mark.parametrize("kind", ["cells", "trajectories"])
def test_a_deleted_damaged_part_is_recorded_anew(whole, kind):
    expected = snapshot(whole)
    list_parts(whole / kind)[0].path.unlink()
    assert write(whole, range(5), PARTS) == {0, 1, 2}
    assert snapshot(whole) == expected


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@pytest.mark.parametrize("identity", [{"seed": 1}, {}], ids=["another", "the same"])
def test_a_killed_fresh_start_never_mixes_two_recordings(tmp_path, whole, identity):
    tokenizer = byte_tokenizer().to_str()
    other = replace(
        MANIFEST,
        identity={**MANIFEST.identity, **identity},
        tokenizer_file_sha256=text_hash(tokenizer),
    )
    if not identity:  # what is begun anew is then the very recording that is there
        write_manifest(whole, other)
        write_tokenizer(whole, tokenizer)
    survived, event = False, 0
    while not survived:
        event += 1
        folder = tmp_path / f"fresh-{event}"
        shutil.copytree(whole, folder)

        def begin_anew(folder=folder):
            with RunWriter(folder) as writer:
                writer.start(other, tokenizer, fresh=True)

        survived = in_a_child_that_dies_at(event, begin_anew)
        with RunWriter(folder) as writer:
            try:
                writer.start(other, tokenizer)
            except RunError:  # the old recording is still the old one
                assert "seed" not in read_manifest(folder).identity
            else:
                assert not identity or writer.sealed == set()
                assert open_run(folder).text([0]) == "!"
    assert event > 5


def test_an_ungraded_copy_gives_way_to_the_graded_one(tmp_path):
    with RunWriter(tmp_path) as writer:
        writer.start(MANIFEST, "{}")
        writer.add(Finished(replace(make_row(0), answer=None, correct=None), make_cells(0)))
        writer.replace(Finished(make_row(0), make_cells(0)))
        assert len(list_parts(tmp_path / "pending")) == 1
    assert_same(open_run(tmp_path), 0)


def test_a_reader_beside_a_writer_sees_everything(tmp_path):
    folder = tmp_path / "run"
    write(folder, range(5), [])
    run = open_run(folder)  # five pending files…
    write(folder, range(5), PARTS)  # …which are sealed away before they are read
    assert [t.row.trajectory for t in run] == [0, 1, 2, 3, 4]
    assert [row.trajectory for row in run.rows()] == [0, 1, 2, 3, 4]


def test_a_swapped_tokenizer_is_noticed(whole):
    (whole / "tokenizer.json").write_text('{"other": 1}')
    with pytest.raises(RunError, match=r"tokenizer\.json: damaged"):
        assert open_run(whole).vocabulary


def test_an_edited_manifest_is_noticed(whole):
    text = (whole / "manifest.json").read_text()
    (whole / "manifest.json").write_text(text.replace('"length": 6', '"length": 7'))
    with pytest.raises(RunError, match="does not match its checksum"):
        open_run(whole)


def test_temporary_files_of_others_are_left_alone(whole):
    (whole / "notes.tmp").write_text("mine")
    (whole / "cells" / "000000-000002.00000000.parquet.tmp").write_text("half")
    write(whole, range(5), PARTS)
    assert (whole / "notes.tmp").exists()
    assert not list((whole / "cells").glob("*.tmp"))


def test_missing_cells_are_reported(whole):
    list_parts(whole / "cells")[0].path.unlink()
    with pytest.raises(RunError, match="its cells are missing"):
        list(open_run(whole))


def test_a_damaged_manifest_is_reported(whole):
    (whole / "manifest.json").write_text('{"schema_version": 2, "ident')
    with pytest.raises(RunError, match=r"manifest\.json: damaged manifest"):
        open_run(whole)


def test_a_manifest_from_the_future_is_refused(whole):
    text = (whole / "manifest.json").read_text()
    (whole / "manifest.json").write_text(text.replace('"schema_version": 2', '"schema_version": 9'))
    with pytest.raises(RunError, match="written by a newer c4"):
        open_run(whole)


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
        patch.setattr(format_module.os, "fsync", full)
        with pytest.raises(OSError, match="No space left"):
            write(folder, range(5), PARTS)
    assert snapshot(folder) == before
    write(folder, range(5), PARTS)
    assert snapshot(folder) == snapshot(whole)


def test_two_recordings_of_one_run_at_a_time_are_refused(whole):
    with RunWriter(whole), pytest.raises(RunError, match="another process is recording here"):
        RunWriter(whole).__enter__()
    with RunWriter(whole):
        pass


def test_a_run_made_differently_is_refused_and_what_differs_is_named(whole):
    other = replace(MANIFEST, identity={**MANIFEST.identity, "task": "math", "model": "m2"})
    with RunWriter(whole) as writer, pytest.raises(RunError) as caught:
        writer.start(other, "{}")
    assert "task: 'gsm8k' there, 'math' here" in str(caught.value)
    assert "model: 'm' there, 'm2' here" in str(caught.value)
    assert "--fresh" in str(caught.value)


def test_fresh_throws_away_the_old_recording_and_nothing_else(whole):
    (whole / "notes.txt").write_text("mine")
    other = replace(MANIFEST, identity={**MANIFEST.identity, "task": "math"})
    with RunWriter(whole) as writer:
        writer.start(other, "{}", fresh=True)
    assert len(open_run(whole)) == 0
    assert open_run(whole).task == "math"
    assert (whole / "notes.txt").read_text() == "mine"


def test_grades_are_added_and_the_newest_counts(whole):
    before = snapshot(whole)
    with RunWriter(whole) as writer:
        given = {1: Grade("8", correct=False), 2: Grade("9", correct=True)}
        writer.add_grades(given, AnswerReading())
        writer.add_grades({1: Grade("7", correct=True)}, AnswerReading())
    after = snapshot(whole)
    assert before.items() <= after.items()
    assert len(after) == len(before) + 2
    graded = {row.trajectory: (row.answer, row.correct) for row in open_run(whole).rows()}
    assert graded[1] == ("7", True)
    assert graded[2] == ("9", True)
    assert graded[0] == (make_row(0).answer, make_row(0).correct)


CAREFUL = AnswerReading(ReadingStyle.CAREFUL, Ending.CUT)
PLAIN = AnswerReading(ReadingStyle.PLAIN, Ending.SKIP)


def test_every_reading_has_its_own_newest_grade(whole):
    with RunWriter(whole) as writer:
        writer.add_grades({1: Grade("8", correct=False), 2: Grade("9", correct=True)}, PLAIN)
        writer.add_grades({1: Grade("7", correct=True)}, CAREFUL)
        writer.add_grades({1: Grade("6", correct=True)}, PLAIN)
    plain = {row.trajectory: row for row in open_run(whole, PLAIN).rows()}
    careful = {row.trajectory: row for row in open_run(whole, CAREFUL).rows()}
    assert [plain[i].answer for i in (1, 2)] == ["6", "9"]
    assert careful[1].answer == "7"
    for rows, reading in ((plain, PLAIN), (careful, CAREFUL)):
        assert (rows[1].style, rows[1].ending) == (reading.style, reading.ending)
    assert (plain[0].answer, plain[0].correct) == (None, None)
    assert plain[0].graded_otherwise  # its own grade is under the default reading
    assert not plain[0].never_graded


def test_a_recording_of_the_format_before_is_read_but_not_continued(whole):
    new = ("choices", "style", "ending")
    for part in list_parts(whole / "trajectories"):
        table = open_part(part).read().drop_columns(list(new))
        part.path.unlink()
        write_part(whole / "trajectories", part.first, part.last, encode_table(table))
    write_manifest(whole, replace(MANIFEST, schema_version=1))
    row = next(open_run(whole).rows())
    assert (row.choices, row.style, row.correct) == ([], None, None)
    assert row.prompt == make_row(0).prompt
    with RunWriter(whole) as writer, pytest.raises(RunError, match="is in format 1, which"):
        writer.start(MANIFEST, "{}")
