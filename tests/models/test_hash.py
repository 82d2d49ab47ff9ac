"""The hash of a large weight file is remembered, and never believed when the file has changed."""

import os
import time

import pytest

from c4.models import _hash, _load_progress
from c4.models._hash import weights_hash


@pytest.fixture
def reads(tmp_path, monkeypatch):
    """Files that were read to be hashed, one entry each time; the cache is empty at first."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(_hash, "REMEMBERED_SIZE", 1)
    monkeypatch.setattr(_hash, "AT_REST", -1e9)  # no file here is older than the test
    seen = []
    read = _hash._read_hash
    monkeypatch.setattr(_hash, "_read_hash", lambda path: seen.append(path) or read(path))
    return seen


@pytest.fixture
def weights(tmp_path):
    path = tmp_path / "model.safetensors"
    path.write_bytes(b"weights")
    return path


def notes(tmp_path):
    return sorted((tmp_path / "cache").rglob("*.txt"))


def test_an_unchanged_file_is_read_once(weights, reads, tmp_path):
    assert weights_hash([weights]) == weights_hash([weights]) == weights_hash([weights])
    assert reads == [weights]
    assert len(notes(tmp_path)) == 1
    assert not list((tmp_path / "cache").rglob("tmp*"))  # nothing half-written is left


def test_the_remembered_hash_is_the_file_s_own(weights, reads, monkeypatch):
    remembered = [weights_hash([weights]) for _ in range(2)]
    monkeypatch.setattr(_hash, "REMEMBERED_SIZE", 10**9)
    assert remembered == [weights_hash([weights])] * 2


def changed_bytes(path):
    path.write_bytes(b"WEIGHTS")


def changed_size(path):
    path.write_bytes(b"more weights")


def changed_bytes_and_old_time(path):
    facts = path.stat()
    path.write_bytes(b"WEIGHTS")
    os.utime(path, ns=(facts.st_atime_ns, facts.st_mtime_ns))


def replaced(path):
    new = path.with_name("new")
    new.write_bytes(b"WEIGHTS")
    os.utime(new, ns=(path.stat().st_atime_ns, path.stat().st_mtime_ns))
    new.replace(path)


def touched(path):
    os.utime(path, ns=(0, 0))


@pytest.mark.parametrize(
    "change", [changed_bytes, changed_size, changed_bytes_and_old_time, replaced, touched]
)
def test_a_changed_file_is_read_again(weights, reads, change):
    before = weights_hash([weights])
    time.sleep(0.02)  # more than the clock of a file system may stand still
    change(weights)
    after = weights_hash([weights])
    assert reads == [weights, weights]
    assert (after == before) == (change is touched)
    assert weights_hash([weights]) == after
    assert len(reads) == 2


def test_a_file_that_has_just_changed_is_not_remembered(weights, reads, tmp_path, monkeypatch):
    monkeypatch.setattr(_hash, "AT_REST", 3600.0)
    weights_hash([weights])
    weights_hash([weights])
    assert len(reads) == 2
    assert not notes(tmp_path)


def test_a_file_that_changes_while_it_is_read_is_not_remembered(
    weights, tmp_path, monkeypatch, reads
):
    read = _hash._read_hash

    def slow(path):
        digest = read(path)
        changed_size(path)
        return digest

    monkeypatch.setattr(_hash, "_read_hash", slow)
    weights_hash([weights])
    assert not notes(tmp_path)


@pytest.mark.parametrize("damage", [b"", b"no hash", b"\xff", b"0" * 65])
def test_a_damaged_note_is_ignored_and_written_anew(weights, reads, tmp_path, damage):
    right = weights_hash([weights])
    (note,) = notes(tmp_path)
    whole = note.read_bytes()
    note.write_bytes(damage)
    assert weights_hash([weights]) == right
    assert len(reads) == 2
    assert note.read_bytes() == whole


def test_a_cache_that_cannot_be_written_is_no_error(weights, reads, tmp_path, monkeypatch):
    (tmp_path / "cache").write_text("a file where the folder should be")
    right = weights_hash([weights])
    assert weights_hash([weights]) == right
    assert len(reads) == 2


def test_a_link_shares_the_note_of_its_file(weights, reads, tmp_path):
    (tmp_path / "link.safetensors").symlink_to(weights)
    assert weights_hash([weights]) == weights_hash([tmp_path / "link.safetensors"])
    assert reads == [weights]


def test_small_files_leave_no_note(weights, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    weights_hash([weights])
    assert not notes(tmp_path)


def test_a_user_who_waits_is_told(weights, reads, monkeypatch, caplog):
    monkeypatch.setattr(_load_progress, "QUIET_SECONDS", -1.0)
    monkeypatch.setattr(_hash, "CHUNK", 2)
    weights_hash([weights])
    assert caplog.text.count("hashing model.safetensors") == 1
