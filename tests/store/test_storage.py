"""What can be made only once, whoever tries, and what need not outlive the machine."""

import errno
import os
from concurrent.futures import ThreadPoolExecutor

import pytest

from c4.store.storage import (
    list_folders,
    list_leftovers,
    make_once,
    note_file,
    owner_of,
    put_once,
    read_file,
    remove_empty_folder,
    remove_made,
)


@pytest.fixture(params=["folder", "bucket"])
def place(request, tmp_path):
    """Where runs are kept: a folder, or a bucket of a real S3 server."""
    return tmp_path if request.param == "folder" else request.getfixturevalue("bucket")


def test_of_many_that_make_a_folder_one_succeeds_and_signs_it(place):
    names = [place / "claims" / f"{number:06d}.1" for number in range(12)]

    def try_all(worker):
        return [name for name in names if make_once(name, worker.encode())]

    workers = [f"worker-{number}" for number in range(8)]
    with ThreadPoolExecutor(len(workers)) as pool:
        made = dict(zip(workers, pool.map(try_all, workers), strict=True))
    assert sorted(name for mine in made.values() for name in mine) == sorted(names)
    assert all(owner_of(name) == worker.encode() for worker in made for name in made[worker])
    assert list_folders(place / "claims") == names


def test_what_was_made_once_can_be_made_again_after_it_was_removed(place):
    folder = place / "claims" / "000001.1"
    assert owner_of(folder) is None
    assert make_once(folder, b"one")
    assert not make_once(folder, b"other")
    remove_made(folder)
    remove_made(folder)
    assert list_folders(place / "claims") == []
    remove_empty_folder(place / "claims")
    assert make_once(folder, b"other")
    assert owner_of(folder) == b"other"


def test_a_folder_with_something_in_it_is_not_removed(tmp_path):
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "file").touch()
    remove_empty_folder(tmp_path / "folder")
    remove_empty_folder(tmp_path / "folder" / "file")
    remove_empty_folder(tmp_path / "nothing")
    assert (tmp_path / "folder" / "file").exists()


@pytest.mark.parametrize("links", [True, False], ids=["links", "no links"])
def test_a_file_put_once_keeps_what_the_first_wrote(place, monkeypatch, links):
    if not links:

        def refuse(*_):
            raise OSError(errno.EPERM, os.strerror(errno.EPERM))

        monkeypatch.setattr(os, "link", refuse)
    path = place / "runs" / "manifest.json"
    assert put_once(path, b"first")
    assert not put_once(path, b"second")
    assert read_file(path) == b"first"
    assert list_leftovers(path.parent) == []


def test_a_note_replaces_the_one_before_without_waiting_for_the_disk(tmp_path, monkeypatch):
    path = tmp_path / "workers" / "one.json"
    note_file(path, b"1")
    monkeypatch.setattr(os, "fsync", None)  # would fail if it were called
    note_file(path, b"2")
    assert read_file(path) == b"2"
    assert list_leftovers(path.parent) == []
