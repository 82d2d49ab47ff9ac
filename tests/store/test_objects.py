"""Runs in an object store, on a real S3 server: the same bytes, the same promises, no secrets."""

import logging
import sys
import threading

import obstore
import pytest

from c4.errors import ConfigError, RunError
from c4.store.check import State, check_run
from c4.store.claims import WORK_FOLDERS, WORKERS, mark_dead
from c4.store.locations import parse_location
from c4.store.manifest import run_folder
from c4.store.merge import plan_merge
from c4.store.parts import list_parts
from c4.store.repair import repair_run
from c4.store.runs import find_runs, open_run
from c4.store.storage import (
    file_exists,
    folder_exists,
    list_files,
    list_folders,
    make_once,
    put_file,
    put_once,
    read_file,
    read_limited,
    remove_files,
    size_of,
    sizes_in,
)
from tests.s3_server import SECRET, free_port
from tests.store.made import snapshot, write


def objects_below(folder):
    """Every object by its name and bytes, as `snapshot` gives those of a folder."""
    found = {path.name: read_file(path) for path in list_files(folder)}
    for inner in list_folders(folder):
        found |= {f"{inner.name}/{name}": data for name, data in objects_below(inner).items()}
    return found


def test_a_run_has_the_same_bytes_as_in_a_folder(bucket, tmp_path):
    folder = run_folder(bucket / "runs", "m", "gsm8k", "c4 H=∞,τ=0.5")
    assert write(folder) == write(tmp_path) == set(range(5))
    assert write(folder) == set()  # what is finished is not made again
    assert objects_below(folder) == snapshot(tmp_path)
    assert find_runs(bucket / "runs") == [folder]
    run, local = open_run(str(folder)), open_run(tmp_path)
    assert list(run.rows()) == list(local.rows())
    assert all(
        (a == b).all()
        for (_, one), (_, other) in zip(run.cells(), local.cells(), strict=True)
        for a, b in [(one.token, other.token), (one.gap, other.gap)]
    )
    assert {finding.state for finding in check_run(folder)} == {State.SOUND}


def test_a_writer_that_dies_anywhere_is_followed_by_one_that_ends_with_the_same_bytes(
    bucket, tmp_path, monkeypatch, short_lease
):
    write(tmp_path)
    real = {name: getattr(obstore, name) for name in ("put", "delete")}
    died = 0
    for last in range(1, 31, 6):
        left = iter(range(last))

        def until(name, *args, left=left, **options):
            if next(left, None) is not None:
                return real[name](*args, **options)
            if threading.current_thread() is threading.main_thread():
                raise KeyboardInterrupt  # and nothing reaches the store any more
            return None

        folder = bucket / f"killed-at-{last}"
        with monkeypatch.context() as patch:
            for name in real:
                patch.setattr(obstore, name, lambda *a, name=name, **o: until(name, *a, **o))
            try:
                write(folder)
            except KeyboardInterrupt:
                died += 1
        for sign in list_files(folder / WORKERS):
            mark_dead(folder, sign.stem, "killed")  # its process, which is this one, still runs
        write(folder)
        recorded = {
            name: data
            for name, data in objects_below(folder).items()
            if name.partition("/")[0] not in WORK_FOLDERS
        }
        assert recorded == snapshot(tmp_path), last
    assert died >= 4


def test_a_run_goes_to_a_store_and_comes_back(bucket, tmp_path):
    write(tmp_path / "here" / "method=x")
    for merge in plan_merge(tmp_path / "here", bucket / "there"):
        merge.run()
    for merge in plan_merge(bucket / "there", tmp_path / "back"):
        merge.run()
    back = find_runs(tmp_path / "back")[0]
    assert list(open_run(back).rows()) == list(open_run(tmp_path / "here" / "method=x").rows())


def test_a_manifest_is_repaired_and_damage_is_named(bucket):
    folder = bucket / "runs"
    write(folder)
    remove_files([folder / "manifest.json"])
    with pytest.raises(RunError, match="c4 runs --repair 's3://"):
        open_run(folder)
    repair_run(folder)
    part = list_parts(folder / "cells")[0]
    data = read_file(part.path)
    middle = len(data) // 3
    put_file(part.path, data[:middle] + bytes([data[middle] ^ 1]) + data[middle + 1 :])
    named = [found.what for found in check_run(folder) if found.state is State.PROBLEM]
    assert len(named) == 1
    assert str(part.path) in named[0]
    with pytest.raises(RunError, match=part.path.name):
        list(open_run(folder).cells())


def test_only_what_is_needed_is_fetched(bucket, s3):
    folder = bucket / "runs"
    write(folder)
    put_file(folder / "large", bytes(10**6))
    s3.reset()
    assert read_file(folder / "large", 1000) == bytes(1000)
    with pytest.raises(ValueError, match="1,000,000 bytes are too many"):
        read_limited(folder / "large", 10)
    assert dict(sizes_in(folder))[folder / "large"] == size_of(folder / "large") == 10**6
    assert s3.bytes_given < 5000
    run = open_run(folder)
    s3.reset()
    assert len(run) == 5
    assert len(s3.requests) == 2  # each part of rows, once
    list(run.rows())
    list(run.rows())
    assert len(s3.requests) == 3  # and the grades, of which there are none


def test_looking_and_removing(bucket):
    assert not folder_exists(bucket / "x")
    assert not file_exists(bucket / "x")
    assert not list_files(bucket / "x")
    put_file(bucket / "x" / "empty", b"")
    assert folder_exists(bucket / "x")
    assert not file_exists(bucket / "x")
    assert read_file(bucket / "x" / "empty", 10) == b""
    remove_files([bucket / "x" / "empty", bucket / "x" / "never"])
    remove_files([])
    assert not folder_exists(bucket / "x")
    for read in (read_file, lambda path: read_file(path, 5)):
        with pytest.raises(FileNotFoundError):
            read(bucket / "x" / "empty")


@pytest.mark.parametrize("name", ["é ü", "a%2Cb", "x=1,y=2", "#1", "a+b", "~", "日本", "a&b;c"])
def test_odd_names_are_names(bucket, name):
    path = bucket / name / f"{name}.txt"
    put_file(path, name.encode())
    assert read_file(path) == name.encode()
    assert list_folders(bucket) == [bucket / name]
    assert list_files(bucket / name) == [path]
    remove_files([path])
    assert not list_folders(bucket)


def test_a_claim_whose_answer_was_lost_is_still_held(bucket, monkeypatch):
    real = obstore.put

    def loses_the_answer(*args, **options):
        real(*args, **options)
        raise obstore.exceptions.GenericError("connection reset")

    with monkeypatch.context() as patch:
        patch.setattr(obstore, "put", loses_the_answer)
        assert make_once(bucket / "claims" / "1.1", b"me")
        with pytest.raises(RunError):
            put_once(bucket / "x", b"1")
    assert make_once(bucket / "claims" / "1.1", b"me")
    assert not make_once(bucket / "claims" / "1.1", b"you")


FORBIDDEN = (
    b"<?xml version='1.0'?><Error><Code>SignatureDoesNotMatch</Code><Message>The signature of "
    + SECRET.encode()
    + b" does not match</Message><AWSAccessKeyId>AKIDEXAMPLE</AWSAccessKeyId>"
    b"<StringToSign>AWS4 AKIDEXAMPLE</StringToSign></Error>"
)


def test_a_store_that_refuses_is_quoted_without_secrets(bucket, s3):
    s3.answer = lambda method, path: (403, b"" if method == "HEAD" else FORBIDDEN)
    for job in (
        lambda: list_files(bucket / "runs"),
        lambda: read_file(bucket / "x"),
        lambda: put_file(bucket / "x", b""),
        lambda: make_once(bucket / "x", b""),
        lambda: remove_files([bucket / "x"]),
    ):
        with pytest.raises(
            RunError, match="SignatureDoesNotMatch: The signature of … does"
        ) as said:
            job()
        assert not any(word in str(said.value) for word in (SECRET, "AKIDEXAMPLE", "http://"))
    with pytest.raises(RunError, match="the store answers 403 Forbidden; check the credentials"):
        file_exists(bucket / "x")


def test_a_missing_bucket_is_said(s3):
    nowhere = parse_location("s3://no-such-bucket/runs")
    for job in (lambda: list_files(nowhere), lambda: put_file(nowhere / "x", b"")):
        with pytest.raises(RunError, match="there is no such bucket; create it"):
            job()


def test_a_busy_server_is_asked_again(bucket, s3):
    refusals = iter([503, 500])
    s3.answer = lambda method, path: (next(refusals), b"") if refusals.__length_hint__() else None
    put_file(bucket / "x", b"1")
    assert read_file(bucket / "x") == b"1"


def test_a_server_that_is_not_there_is_given_up(bucket, monkeypatch):
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://me:{SECRET}@127.0.0.1:{free_port()}")
    monkeypatch.setenv("C4_RETRY_SECONDS", "0.2")
    with pytest.raises(RunError, match="nothing listens at the address of the store") as said:
        list_files(bucket)
    assert SECRET not in str(said.value)
    for wrong in ("soon", "-1", "inf", "nan"):
        monkeypatch.setenv("C4_RETRY_SECONDS", wrong)
        with pytest.raises(ConfigError, match="give a number of seconds"):
            list_files(bucket)


@pytest.mark.parametrize(
    ("scheme", "variable"),
    [
        ("s3", "AWS_ACCESS_KEY_ID"),
        ("gs", "GOOGLE_APPLICATION_CREDENTIALS"),
        ("az", "AZURE_STORAGE_ACCOUNT_NAME"),
    ],
)
def test_missing_credentials_are_named(scheme, variable, monkeypatch, tmp_path):
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_ENDPOINT_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_METADATA_ENDPOINT", f"http://127.0.0.1:{free_port()}/latest")
    monkeypatch.setenv("C4_RETRY_SECONDS", "0.2")
    with pytest.raises(RunError, match=variable):
        list_files(parse_location(f"{scheme}://bucket/runs"))


def test_the_extra_is_named_where_it_is_missing(monkeypatch):
    monkeypatch.setitem(sys.modules, "obstore", None)
    with pytest.raises(ConfigError, match=r"pip install 'c4-dlm\[cloud\]'"):
        list_files(parse_location("s3://bucket/runs"))


def test_no_secret_is_kept_or_logged(bucket, caplog):
    caplog.set_level(logging.DEBUG)
    write(bucket / "runs")
    kept = b"".join(objects_below(bucket / "runs").values())
    for secret in (SECRET, "AKIDEXAMPLE"):
        assert secret.encode() not in kept
        assert secret not in caplog.text
