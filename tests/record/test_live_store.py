"""What a machine can do to the results of a live run, at the level of files."""

from dataclasses import replace

import pytest
from test_store import (
    MANIFEST,
    PARTS,
    SHAPE,
    in_a_child_that_dies_at,
    make_cells,
    make_row,
    snapshot,
)

from c4.errors import RunError
from c4.record import LiveFacts, open_live, open_run
from c4.record._format import list_parts
from c4.record._rows import live_row
from c4.record._store import RECORDED, RESULTS, Finished, RunWriter

KINDS = [RESULTS, (*RESULTS, *RECORDED)]


def make_facts(index):
    return LiveFacts(
        block_passes=[3, index],
        block_seconds=[0.5, 0.25],
        exit_step=index or None,
        exit_reason="cvee" if index else "full",
        committed_by=[0, 1, 2, 3, 4, 0],
        commit_step=[1] * SHAPE.length,
        revoked=index,
    )


def manifest(kinds):
    identity = {**MANIFEST.identity, "method": "c4", "recorded": kinds != RESULTS}
    return replace(MANIFEST, identity=identity)


def write(folder, kinds):
    """What a live run does, without a model. Returns the examples it had to make."""
    with RunWriter(folder, kinds) as writer:
        writer.start(manifest(kinds), "{}")
        todo = set(range(5)) - writer.sealed - writer.pending.keys()
        for index in sorted(todo):
            cells = None if kinds == RESULTS else make_cells(index)
            writer.add(Finished(make_row(index), cells, make_facts(index)))
        for part in PARTS:
            writer.seal(part)
    return todo


def finished(folder):
    """The examples that are safe, each as it was made."""
    if not (folder / "manifest.json").exists():
        return set()
    rows = open_live(folder).table().to_pylist()
    for row in rows:
        index = row["trajectory"]
        assert row == live_row(make_row(index), make_facts(index))
    return {row["trajectory"] for row in rows}


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@pytest.mark.parametrize("kinds", KINDS, ids=["results", "recorded"])
def test_killed_at_any_instant_it_resumes_to_the_same_bytes(tmp_path, kinds):
    write(tmp_path / "whole", kinds)
    expected = snapshot(tmp_path / "whole")
    survived, event = False, 0
    while not survived:
        event += 1
        folder = tmp_path / f"killed-{event}"
        survived = in_a_child_that_dies_at(event, lambda f=folder: write(f, kinds))
        safe = finished(folder)
        assert write(folder, kinds) == set(range(5)) - safe, f"killed at event {event}"
        assert snapshot(folder) == expected, f"killed at event {event}"
    assert event > 20


@pytest.mark.parametrize("kind", ["results", "cells", "trajectories"])
def test_a_deleted_part_of_any_kind_is_decoded_anew(tmp_path, kind):
    write(tmp_path, KINDS[1])
    expected = snapshot(tmp_path)
    list_parts(tmp_path / kind)[0].path.unlink()
    assert write(tmp_path, KINDS[1]) == {0, 1, 2}
    assert snapshot(tmp_path) == expected


def test_damaged_results_are_reported_by_name(tmp_path):
    write(tmp_path, RESULTS)
    path = list_parts(tmp_path / "results")[1].path
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(RunError, match=rf"{path.name}: damaged"):
        open_live(tmp_path).table()


def test_a_recorded_live_run_opens_as_a_recording_too(tmp_path):
    write(tmp_path, KINDS[1])
    assert [t.row for t in open_run(tmp_path)] == [make_row(i) for i in range(5)]
    assert [row.revoked for row in open_live(tmp_path).rows()] == [0, 1, 2, 3, 4]
