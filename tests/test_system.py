"""Places that cannot be written are found out before anything is computed."""

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from c4.cli.app import app
from c4.errors import ConfigError, system
from c4.errors.system import (
    ADVICE,
    explain,
    reason,
    require_writable_file,
    require_writable_folder,
    user_path,
)


@pytest.fixture
def places(tmp_path, monkeypatch):
    """Places at which nothing can be written, by what is wrong with them."""
    (tmp_path / "file").touch()
    (tmp_path / "link").symlink_to(tmp_path / "gone")
    (tmp_path / "circle").symlink_to(tmp_path / "circle")
    locked = tmp_path / "locked"
    locked.mkdir()
    allowed = system.TemporaryFile  # whoever runs the tests may write anywhere

    def refuse(**options):
        if options["dir"] == locked:
            raise PermissionError(errno.EACCES, "Permission denied", locked)
        return allowed(**options)

    monkeypatch.setattr(system, "TemporaryFile", refuse)
    return {
        "below a file": tmp_path / "file" / "deep" / "er",
        "link to nothing": tmp_path / "link",
        "below a link to nothing": tmp_path / "link" / "deep",
        "link in a circle": tmp_path / "circle" / "deep",
        "locked": locked / "deep",
        "null byte": tmp_path / "a\0b",
        "long name": tmp_path / "deep" / ("x" * 300),
        "kernel's own": Path("/proc/nothing/here"),
    }


NAMES = ["below a file", "link to nothing", "below a link to nothing", "link in a circle", "locked"]
NAMES += ["null byte", "long name", "kernel's own"]


@pytest.mark.parametrize("name", NAMES)
def test_a_place_that_cannot_be_written_is_refused(places, name):
    for check in (require_writable_folder, require_writable_file):
        with pytest.raises(ConfigError) as refused:
            check(places[name])
        assert str(places[name]) in str(refused.value)
        assert "Errno" not in str(refused.value)


def test_a_place_that_can_be_written_is_left_as_it_is(tmp_path):
    (tmp_path / "old.json").write_text("kept")
    before = sorted(tmp_path.rglob("*"))
    require_writable_folder(tmp_path)
    require_writable_folder(tmp_path / "new" / "newer")
    require_writable_file(tmp_path / "old.json")
    require_writable_file(tmp_path / "new" / "new.json")
    assert sorted(tmp_path.rglob("*")) == before
    assert (tmp_path / "old.json").read_text() == "kept"


def test_a_folder_is_no_file_and_neither_is_a_device(tmp_path):
    with pytest.raises(ConfigError, match="this is a folder; name a file in it"):
        require_writable_file(tmp_path)
    with pytest.raises(ConfigError, match="neither a file nor a folder"):
        require_writable_file(Path("/dev/null"))
    (tmp_path / "file").touch()
    with pytest.raises(ConfigError, match="is not a folder"):
        require_writable_folder(tmp_path / "file")


@pytest.mark.parametrize("number", ADVICE)
def test_what_the_system_refuses_is_said_in_words(number):
    error = OSError(number, os.strerror(number), "some/file")
    assert explain(error) == f"some/file: {ADVICE[number]}"
    assert "Errno" not in explain(error)


def test_unknown_refusals_are_said_in_the_system_s_words():
    assert explain(OSError(errno.EXDEV, "x", "a", None, "b")) == "a: invalid cross-device link"
    assert explain(OSError("no number")) == "no number"
    assert reason(ValueError("embedded null byte")) == "embedded null byte"
    assert user_path("~no-such-user-here/x") == Path("~no-such-user-here/x")


WORK = ["c4.models.load_model", "c4.replay.pools.split_runs", "c4.replay.decisions.replay"]
WORK += ["c4.record.plan.load_planned"]
COMMANDS = [
    ["record", "--task", "math", "--n", "1"],
    ["run", "--task", "math", "--method", "c4", "--n", "1"],
    ["bench", "--task", "math", "--method", "c4", "--n", "1"],
    ["models", "eval", "--task", "math", "--n", "1"],
    ["demo", "--n", "1"],
    ["figures"],
    ["calibrate"],
    ["replay"],
]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command[0])
def test_commands_look_where_they_will_write_before_they_work(
    places, monkeypatch, tmp_path, command, name
):
    monkeypatch.chdir(tmp_path)
    for work in WORK:
        monkeypatch.setattr(work, None)
    result = CliRunner().invoke(app, [*command, "--out", str(places[name])])
    assert result.exit_code == 2, result.exception
    assert isinstance(result.exception, SystemExit)
    assert "error: " in result.stderr
    assert "Errno" not in result.stderr
    assert "no recordings below" not in result.stderr


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount")
def test_a_read_only_file_system_is_named(tmp_path):
    place = tmp_path / "mounted"
    place.mkdir()
    mount = ["unshare", "--mount", "sh", "-c"]
    script = f"mount -t tmpfs -o ro none {place} && "
    script += f"$0 -m c4.cli record --task math --out {place}/runs"
    tried = subprocess.run([*mount, "true"], check=False, capture_output=True)
    if tried.returncode:
        pytest.skip("no mounting in this container")
    done = subprocess.run(
        [*mount, script, sys.executable], check=False, capture_output=True, text=True
    )
    assert done.returncode == 2
    assert "this file system is read-only; choose another place" in done.stderr
