"""What users may write where runs are kept, and what is refused."""

from pathlib import Path

import pytest

from c4.errors import ConfigError
from c4.store.locations import ObjectPath, parse_local_path, parse_location, resolve_location


@pytest.mark.parametrize(
    ("text", "bucket", "key"),
    [
        ("s3://bucket", "s3://bucket", ""),
        ("s3://bucket/", "s3://bucket", ""),
        ("s3://bucket/a/b", "s3://bucket", "a/b"),
        ("S3://bucket//a///b/", "s3://bucket", "a/b"),
        ("gs://bucket/two words/é%2C", "gs://bucket", "two words/é%2C"),
        ("az://container/runs#1@home", "az://container", "runs#1@home"),
    ],
)
def test_addresses_are_bucket_and_key(text, bucket, key):
    location = parse_location(text)
    assert (location.bucket, location.key) == (bucket, key)
    assert str(location) == "/".join(filter(None, [bucket, key]))
    assert parse_location(str(location)) == location


def test_addresses_are_joined_and_taken_apart_like_paths():
    folder = parse_location("s3://bucket/runs") / "model=tiny" / "task=math"
    assert str(folder / "rows") == "s3://bucket/runs/model=tiny/task=math/rows"
    assert isinstance(folder.parent, ObjectPath)
    assert (folder.name, folder.parent.name) == ("task=math", "model=tiny")
    assert str(folder.with_name("x")) == "s3://bucket/runs/model=tiny/x"
    assert resolve_location(folder) == folder


@pytest.mark.parametrize("text", ["runs", "/tmp/a b", "./a://b", "runs:1", ""])
def test_paths_are_paths(text):
    assert parse_location(text) == Path(text)


def test_file_addresses_are_folders():
    assert parse_location("file:///tmp/two%20words") == Path("/tmp/two words")
    assert parse_location("file://localhost/tmp/x") == Path("/tmp/x")


@pytest.mark.parametrize(
    "text",
    [
        *("s4://bucket/runs", "https://bucket.s3.amazonaws.com/runs", "s3a://bucket/x"),
        *("s3://", "s3:///runs", "s3://bucket/../other", "s3://./x", "file://host/x", "file://x"),
        *("s3:/bucket/runs", "s3:bucket", "GS:/bucket"),
    ],
)
def test_what_is_no_address_is_refused_and_makes_no_folder(text, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError, match="://"):
        parse_location(text)
    assert not list(tmp_path.iterdir())


def test_an_address_that_was_made_a_path_is_refused():
    with pytest.raises(ConfigError, match="write an address as text, like s3://bucket/path"):
        parse_location(Path("s3://bucket/runs"))


@pytest.mark.parametrize(
    "text",
    [
        "s3://AKIA:hunter2@bucket/runs",
        "az://container/runs?sig=hunter2",
        "s4://me:hunter2@bucket/runs",
        "file://me:hunter2@host/runs",
    ],
)
def test_secrets_in_addresses_are_refused_and_not_repeated(text):
    with pytest.raises(ConfigError) as refused:
        parse_location(text)
    assert "hunter2" not in str(refused.value)


def test_an_address_is_no_local_path():
    with pytest.raises(ConfigError, match="give a path"):
        parse_local_path("s3://bucket/figures")
    with (
        pytest.raises(ConfigError, match="where a local path is needed"),
        open(parse_location("s3://bucket/x")),
    ):
        pass
    assert parse_local_path("file:///tmp/x") == Path("/tmp/x")
