"""A writer that is killed, loses power or meets a disk error at any instant."""

import errno
import os
import shutil
from dataclasses import replace

import numpy as np
import pytest
from conftest import byte_tokenizer
from made import (
    MANIFEST,
    PARTS,
    in_a_child_that_dies_at,
    make_cells,
    make_manifest,
    make_row,
    snapshot,
    write,
)

from benchmarks.small_jobs import Events, PowerCut, die, in_a_child
from c4.errors import RunError
from c4.store.cells import SIGNALS
from c4.store.manifest import read_manifest, text_hash, write_manifest, write_tokenizer
from c4.store.parts import list_parts
from c4.store.runs import open_run
from c4.store.writer import RunWriter

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning"),
    pytest.mark.usefixtures("short_lease"),
]


def finished(folder):
    """The trajectories that are safe: whoever opens the run now reads them as they were made."""
    if not (folder / "manifest.json").exists():
        return set()
    run = open_run(folder)
    for row in run.rows():
        assert row == make_row(row.trajectory)
    for index, cells in run.cells() if run.has_cells else ():
        for name in SIGNALS:
            np.testing.assert_array_equal(getattr(cells, name), getattr(make_cells(index), name))
    return set(run.indices)


def disk_error(_):
    raise OSError(errno.EIO, os.strerror(errno.EIO))


DISTURBANCES = {
    "killed": lambda root, at: Events(root, die, at),
    "power cut": PowerCut,
    "disk error": lambda root, at: Events(root, disk_error, at),
}


@pytest.mark.parametrize("disturbance", DISTURBANCES)
@pytest.mark.parametrize(("cells", "every"), [(True, 31), (False, 41)], ids=["cells", "rows alone"])
def test_disturbed_at_any_instant_it_resumes_to_the_same_bytes(tmp_path, disturbance, cells, every):
    """Every file operation is a place to die; after each, one more session ends as if unharmed.

    `benchmarks/kill_matrix.py` and `store_faults.py` try all of them; here are some.
    """
    manifest = make_manifest(cells)
    write(tmp_path / "whole", manifest=manifest)
    expected = snapshot(tmp_path / "whole")
    reached_the_end, event = False, 0
    while not reached_the_end:
        event += every
        folder = tmp_path / f"disturbed-{event}"
        events = DISTURBANCES[disturbance](folder, event)

        def work(report, folder=folder, events=events):
            events.install()
            write(folder, manifest=manifest)
            report(1)

        reached_the_end = in_a_child(work).reported == {1}
        safe = finished(folder)
        made = write(folder, manifest=manifest)
        assert made == set(range(5)) - safe, f"disturbed at event {event}"
        assert snapshot(folder) == expected, f"disturbed at event {event}"
    assert event > 20


@pytest.mark.parametrize(
    ("cells", "kind"), [(True, "rows"), (True, "cells"), (False, "rows")], ids=str
)
def test_a_deleted_damaged_part_is_recorded_anew(tmp_path, cells, kind):
    manifest = make_manifest(cells)
    write(tmp_path, manifest=manifest)
    expected = snapshot(tmp_path)
    list_parts(tmp_path / kind)[0].path.unlink()
    if cells:  # what is left of the part goes only if the user says so
        rest = list_parts(tmp_path / ("cells" if kind == "rows" else "rows"))[0].path
        with pytest.raises(RunError, match=rf"{rest.name}: its {kind} are missing.*delete that"):
            write(tmp_path, manifest=manifest)
        rest.unlink()
    assert write(tmp_path, manifest=manifest) == {0, 1, 2}
    assert snapshot(tmp_path) == expected


@pytest.mark.parametrize("identity", [{"seed": 1}, {}], ids=["another", "the same"])
def test_a_killed_fresh_start_never_mixes_two_recordings(tmp_path, identity):
    whole = tmp_path / "whole"
    tokenizer = byte_tokenizer().to_str()
    other = replace(make_manifest(**identity), tokenizer_file_sha256=text_hash(tokenizer))
    write(whole)
    if not identity:  # what is begun anew is then the very recording that is there
        write_manifest(whole, other)
        write_tokenizer(whole, tokenizer)
    survived, event = False, 0
    while not survived:
        event += 7
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
                assert read_manifest(folder).identity == MANIFEST.identity
            else:
                assert not identity or writer.sealed == set()
                assert open_run(folder).text([0]) == "!"
    assert event > 5


def test_a_reader_beside_a_writer_sees_everything(tmp_path):
    folder = tmp_path / "run"
    write(folder, parts=[])
    run = open_run(folder)  # five pending files…
    write(folder, parts=PARTS)  # …which are sealed away before they are read
    assert [t.row.trajectory for t in run] == [0, 1, 2, 3, 4]
    assert [row.trajectory for row in run.rows()] == [0, 1, 2, 3, 4]
