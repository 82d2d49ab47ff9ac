"""Two halves of one run become one, and anything else is refused with what differs."""

import shutil
from dataclasses import replace

import pytest
from made import (
    MANIFEST,
    PARTS,
    add_grade,
    cut,
    in_a_child_that_dies_at,
    make_cells,
    make_manifest,
    make_row,
    snapshot,
    write,
)
from typer.testing import CliRunner

from c4.cli.app import app
from c4.errors import RunError
from c4.store.check import State, check_run
from c4.store.merge import plan_merge
from c4.store.runs import open_run
from c4.store.writer import RunWriter
from c4.tasks import AnswerReading, Ending, ReadingStyle, Verdict

PLAIN = AnswerReading(ReadingStyle.PLAIN, Ending.SKIP)
UNGRADED = {"answer": None, "verdict": None, "style": None, "ending": None, "grader": None}


def merge(source, target):
    return [planned.run() for planned in plan_merge(source, target)]


def write_decodes(folder, decodes, parts=(), manifest=MANIFEST):
    """A run of decodes of one's own."""
    with RunWriter(folder) as writer:
        writer.start(manifest, "{}")
        for decode in decodes:
            writer.add(*decode)
        for part in parts:
            writer.seal(part)
    return folder


def decode(index, cells=True, **changes):
    return replace(make_row(index), **changes), make_cells(index) if cells else None


def sound(folder):
    return [finding.what for finding in check_run(folder) if finding.state is not State.SOUND] == []


@pytest.mark.parametrize("cells", [True, False], ids=["cells", "rows alone"])
@pytest.mark.parametrize("sealed", [True, False], ids=["sealed", "pending"])
def test_two_halves_become_the_whole_run(tmp_path, cells, sealed):
    manifest = make_manifest(cells)
    first, second, whole = (tmp_path / name for name in ("first", "second", "whole"))
    write(whole, manifest=manifest)
    write(first, PARTS[0], PARTS[:1] if sealed else [], manifest=manifest)
    write(second, PARTS[1], PARTS[1:] if sealed else [], manifest=manifest)
    before = snapshot(second)
    (merged,) = merge(second, first)
    assert (merged.folder, merged.added, merged.known) == (first, 2, 0)
    assert snapshot(second) == before
    assert list(open_run(first).rows()) == [make_row(i) for i in range(5)]
    assert sound(first)
    write(first, manifest=manifest)
    assert snapshot(first) == snapshot(whole)


def test_halves_of_two_machines_are_said_to_be_that_by_their_folders(tmp_path, caplog):
    source, target = tmp_path / "a", tmp_path / "b"
    write(source, PARTS[0])
    write(target, PARTS[1], manifest=replace(MANIFEST, environment={"machine": "another"}))
    merge(source, target)
    assert f"{source} was made with other devices or programs than {target}" in caplog.text


def test_what_both_have_stays_the_target_s(tmp_path):
    source = write_decodes(tmp_path / "a", [decode(i, wall_seconds=9.0) for i in range(4)])
    target = write_decodes(tmp_path / "b", [decode(i) for i in range(2, 5)])
    (merged,) = merge(source, target)
    assert (merged.added, merged.known) == (2, 2)
    walls = [row.wall_seconds for row in open_run(target).rows()]
    assert walls == [9.0, 9.0, *(make_row(i).wall_seconds for i in (2, 3, 4))]
    assert merge(source, target)[0].added == 0


@pytest.mark.parametrize("cells", [True, False], ids=["cells", "rows alone"])
def test_half_a_part_is_brought_as_pending_trajectories(tmp_path, cells):
    manifest = make_manifest(cells)
    source, target, whole = (tmp_path / name for name in ("source", "target", "whole"))
    for folder in (source, whole):
        write(folder, manifest=manifest)
    write(target, range(1), [], manifest=manifest)
    (merged,) = merge(source, target)
    assert (merged.added, merged.known) == (4, 1)
    assert open_run(target).indices == [0, 1, 2, 3, 4]
    assert sound(target)
    assert write(target, manifest=manifest) == set()
    assert snapshot(target) == snapshot(whole)


def test_a_run_that_is_not_there_yet_is_copied_to_its_place(tmp_path):
    write(tmp_path / "source" / "method=x")
    (merged,) = merge(tmp_path / "source", tmp_path / "runs")
    assert merged.folder == tmp_path / "runs" / "model=m" / "task=gsm8k" / "method=baseline"
    assert snapshot(merged.folder) == snapshot(tmp_path / "source" / "method=x")


@pytest.mark.parametrize(
    "changes",
    [{"seed": 1}, {"weights_sha256": "f" * 64, "dtype": "bfloat16"}, {"cells": False}],
    ids=str,
)
def test_another_run_is_refused_with_every_key_that_differs(tmp_path, changes):
    cells = changes.get("cells", True)
    write(tmp_path / "a", range(2), [], manifest=make_manifest(**{"cells": cells} | changes))
    write(tmp_path / "b", range(2, 4), [])
    before = snapshot(tmp_path / "b")
    with pytest.raises(RunError) as refused:
        merge(tmp_path / "a", tmp_path / "b")
    for key, value in changes.items():
        assert f"{key}: {MANIFEST.identity[key]!r} there, {value!r} here" in str(refused.value)
    assert snapshot(tmp_path / "b") == before


@pytest.mark.parametrize(
    "changes",
    [{"final_ids": [9, 1, 2, 3, 4, 5]}, {"text": "other", "revoked": 3}, {"prompt": "another"}],
    ids=str,
)
@pytest.mark.parametrize("sealed", [True, False], ids=["sealed", "pending"])
def test_another_decode_of_one_trajectory_is_refused(tmp_path, changes, sealed):
    parts = PARTS[:1] if sealed else []
    source = write_decodes(tmp_path / "a", [decode(0), decode(1, **changes), decode(2)], parts)
    target = write_decodes(tmp_path / "b", [decode(1)])
    before = snapshot(target)
    with pytest.raises(RunError, match=r"trajectory 1 has different decodes .* nothing was merged"):
        merge(source, target)
    assert snapshot(target) == before


def test_grades_come_along_and_those_of_the_target_stay(tmp_path):
    source = write_decodes(tmp_path / "a", [decode(0), decode(1), decode(2)])
    target = write_decodes(tmp_path / "b", [decode(1), decode(3)])
    add_grade(source, 0, Verdict.CRASHED)
    add_grade(target, 3, Verdict.TIMED_OUT)
    for _ in range(2):
        merge(source, target)
        assert verdicts(target) == {
            0: Verdict.CRASHED,
            1: make_row(1).verdict,
            2: make_row(2).verdict,
            3: Verdict.TIMED_OUT,
        }
    assert len(list((target / "grades").iterdir())) == 2


@pytest.mark.parametrize("failed", ["a", "b"])
def test_what_the_machine_failed_at_is_graded_by_the_other_half(tmp_path, failed):
    source, target = (write_decodes(tmp_path / name, [decode(1, **UNGRADED)]) for name in "ab")
    for folder in (source, target):
        verdict = Verdict.NOT_GRADABLE if folder.name == failed else Verdict.CRASHED
        add_grade(folder, 1, verdict)
    add_grade(tmp_path / failed, 1, Verdict.NOT_GRADABLE)  # under a higher number
    merge(source, target)
    assert verdicts(target) == {1: Verdict.CRASHED}


def verdicts(folder, reading=None):
    return {row.trajectory: row.verdict for row in open_run(folder, reading).rows()}


@pytest.mark.parametrize("later", ["source", "target"])
def test_two_different_grades_are_refused_whatever_their_counters_say(tmp_path, later):
    source, target = (write_decodes(tmp_path / name, [decode(1)]) for name in "ab")
    for folder in (source, target):
        if folder.name == {"source": "a", "target": "b"}[later]:
            add_grade(folder, 1, Verdict.TIMED_OUT, PLAIN)
            add_grade(folder, 1, Verdict.NOT_GRADABLE)
    add_grade(source, 1, Verdict.CRASHED)
    add_grade(target, 1, Verdict.WRONG)
    before = snapshot(target)
    with pytest.raises(RunError, match=r"trajectory 1 has different grades in .*; nothing was"):
        merge(source, target)
    assert snapshot(target) == before
    add_grade(target, 1, Verdict.CRASHED)
    merge(source, target)
    assert verdicts(target) == {1: Verdict.CRASHED}
    assert verdicts(target, PLAIN) == {1: Verdict.TIMED_OUT}


def test_what_is_brought_counts_as_it_did_in_the_source(tmp_path):
    source = write_decodes(tmp_path / "a", [decode(i) for i in range(3)], PARTS[:1])
    target = write_decodes(tmp_path / "b", [decode(3)])
    for number, verdict in ((0, Verdict.CRASHED), (1, Verdict.TIMED_OUT), (0, Verdict.WRONG)):
        add_grade(source, number, verdict)
        add_grade(source, number, verdict, PLAIN)
    merge(source, target)
    for reading in (None, PLAIN):
        theirs, ours = verdicts(source, reading), verdicts(target, reading)
        assert {number: ours[number] for number in theirs} == theirs


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@pytest.mark.usefixtures("short_lease")
def test_a_merge_that_is_killed_anywhere_can_be_repeated(tmp_path):
    source, start, whole = (tmp_path / name for name in ("source", "start", "whole"))
    write(source)
    add_grade(source, 2, Verdict.CRASHED)
    add_grade(source, 1, Verdict.CRASHED, PLAIN)
    write(start, range(4, 5), [])
    merge(source, shutil.copytree(start, whole))
    event, survived = 0, False
    while not survived:
        event += 11
        target = shutil.copytree(start, tmp_path / f"killed-{event}")
        survived = in_a_child_that_dies_at(event, lambda target=target: merge(source, target))
        assert 4 in open_run(target).indices
        merge(source, target)
        assert snapshot(target) == snapshot(whole), event
    assert event > 20


@pytest.mark.parametrize("kind", ["rows", "cells", "grades", "tokenizer.json"])
def test_a_damaged_source_is_named_and_nothing_is_written(tmp_path, kind):
    source, target = tmp_path / "a", tmp_path / "b"
    write(source)
    add_grade(source, 2, Verdict.CRASHED)
    write(target, range(4, 5), [])
    path = source / kind
    path = sorted(path.iterdir())[-1] if path.is_dir() else path
    cut(path)
    before = snapshot(target)
    with pytest.raises(RunError, match=rf"{path.name}: damaged"):
        merge(source, target)
    assert snapshot(target) == before


def test_two_runs_copied_into_one_folder_are_noticed(tmp_path):
    one = write_decodes(tmp_path / "a", [decode(i) for i in range(3)], PARTS[:1])
    others = [decode(i, text="another") for i in range(3)]
    other = write_decodes(tmp_path / "b", others, PARTS[:1])
    shutil.copytree(other, one, dirs_exist_ok=True)
    with pytest.raises(RunError, match=r"two runs were copied into one folder.*c4 runs --merge"):
        open_run(one)
    assert not sound(one)
    with pytest.raises(RunError, match="two runs were copied into one folder"):
        write(one)


def test_of_two_sealed_copies_one_counts_whole_and_a_recording_removes_the_other(tmp_path):
    """A worker that stood still while it sealed may seal what another has sealed meanwhile."""
    one = write_decodes(tmp_path / "a", [decode(i) for i in range(3)], PARTS[:1])
    others = [decode(i, wall_seconds=9.0) for i in range(3)]
    other = write_decodes(tmp_path / "b", others, PARTS[:1])
    shutil.copytree(other, one, dirs_exist_ok=True)
    assert len({row.wall_seconds for row in open_run(one).rows()}) in (1, 3)
    assert State.PROBLEM not in {finding.state for finding in check_run(one)}
    assert [t.row.trajectory for t in open_run(one)] == [0, 1, 2]
    write(one, range(3), PARTS[:1])
    assert len(list((one / "rows").iterdir())) == len(list((one / "cells").iterdir())) == 1
    assert len(open_run(one)) == 3


def test_the_command_says_what_it_brought(tmp_path):
    write(tmp_path / "a" / "method=x")
    args = ["runs", "--merge", str(tmp_path / "a"), "--runs", str(tmp_path / "runs")]
    result = CliRunner().invoke(app, args)
    assert result.exit_code == 0, result.output
    said = result.stdout.replace("\n", "")
    assert "method=baseline: 5 trajectories added, none were there" in said
    again = CliRunner().invoke(app, [*args, "--json"])
    assert '"added": 0, "known": 5' in again.stdout


def test_several_sources_are_merged_one_after_the_other(tmp_path):
    for name, indices in (("a", range(2)), ("b", range(1, 4)), ("c", range(3, 5))):
        write(tmp_path / name, indices, [])
    args = ["--merge", str(tmp_path / "a"), "--merge", str(tmp_path / "b"), "--json"]
    result = CliRunner().invoke(app, ["runs", *args, "--runs", str(tmp_path / "c")])
    assert result.exit_code == 0, result.output
    assert '"added": 2, "known": 0' in result.stdout
    assert '"added": 1, "known": 2' in result.stdout
    assert open_run(tmp_path / "c").indices == [0, 1, 2, 3, 4]


def test_a_merge_that_makes_no_sense_is_refused(tmp_path):
    write(tmp_path / "runs" / "method=a")
    write(tmp_path / "runs" / "method=b", manifest=make_manifest(seed=1))
    with pytest.raises(RunError, match="no runs to merge"):
        merge(tmp_path / "nowhere", tmp_path / "runs")
    with pytest.raises(RunError, match="source and target are the same run"):
        merge(tmp_path / "runs" / "method=a", tmp_path / "runs" / "method=a")
    with pytest.raises(RunError, match="holds 2 runs"):
        merge(tmp_path / "runs", tmp_path / "method=c")
    result = CliRunner().invoke(app, ["runs", "--merge", "x", "--check"])
    assert "one of --check, --repair, --merge and --watch" in result.stderr


def test_a_manifest_of_others_leads_nowhere_but_below_the_target(tmp_path):
    home = tmp_path / "home"
    hostile = make_manifest(model="x/../../../escaped", task="../../y", label="../z\0\n")
    write(tmp_path / "source", manifest=hostile)
    merge(tmp_path / "source", home / "runs")
    (found,) = home.rglob("manifest.json")
    assert found.is_relative_to(home / "runs")
    assert {path.name for path in tmp_path.iterdir()} == {"home", "source"}
    assert open_run(found.parent).model == "x/../../../escaped"
