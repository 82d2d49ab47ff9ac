"""Every command that takes a folder of runs takes the address of an object store."""

import inspect
import json
import typing
from pathlib import PurePath

import pytest

from c4.cli.app import app
from c4.cli.options import ANY_PLACE, LOCAL_PLACE
from c4.store.runs import find_runs, open_run
from c4.store.storage import file_exists, list_files
from tests.commands import c4, done
from tests.s3_server import SECRET


def ok(*args):
    return done(*args).stdout


@pytest.fixture
def options(random_llada):
    return ("--task", "svamp", "--model", random_llada, "--source", "embedded", "--n", 3)


def test_runs_in_a_store_are_recorded_resumed_read_and_checked(
    bucket, options, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    root = bucket / "my runs"
    summary = json.loads(ok("record", *options, "--out", root, "--json"))
    assert summary["folder"].startswith(str(root))
    assert summary["n"] == 3
    (folder,) = find_runs(root)
    before = [list_files(folder / kind) for kind in ("rows", "cells")]
    ok("record", *options, "--out", root)
    assert [list_files(folder / kind) for kind in ("rows", "cells")] == before
    local = tmp_path / "local"
    assert "3 trajectories added" in ok("runs", "--merge", root, "--runs", local)
    assert list(open_run(find_runs(local)[0]).rows()) == list(open_run(folder).rows())
    gates = ("--gate", "cvee", "--gate", "prophet", "--json")
    replayed = ok("replay", "--runs", root, *gates)
    assert replayed == ok("replay", "--runs", local, *gates)
    assert replayed == ok("replay", "--runs", root, *gates)  # now from the cache
    assert list((tmp_path / "cache").rglob("*.parquet"))
    assert "no damage" in ok("runs", "--check", "--runs", root)
    assert not [p for p in tmp_path.iterdir() if p.name.startswith("s3")]


def test_what_comes_of_runs_can_be_kept_beside_them(bucket, options, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    root = bucket / "runs"
    ok("record", *options, "--skip", 0, "--out", root)
    frozen = root / "calibration.json"
    pooled = ("--pool", 2, "--set", "tau=0.1,0.9", "--gamma", 2, "--tolerance", 100)
    assert f"frozen in {frozen}" in ok("calibrate", "--runs", root, *pooled, "--out", frozen)
    assert file_exists(frozen)
    assert "calibration.json" in ok("replay", "--runs", root, "--config", frozen)
    ok("run", *options, "--skip", 0, "--method", "c4", "--out", root)
    timed = ("--method", "baseline", "--n", 1, "--passes", 1, "--warmups", 0)
    ok("bench", *options[:-2], *timed, "--out", root)
    (run, *_) = find_runs(root)
    ok("grade", run, "--reading", "plain")
    assert "c4" in ok("report", "main", "--runs", root)
    ok("figures", "stabilization", "--runs", root, "--out", tmp_path / "figures")
    assert len(json.loads(ok("runs", "--runs", root, "--json"))) == 2
    assert "no damage" in ok("runs", "--check", "--runs", root)


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (("record", "--task", "math", "--out", "s4://b/runs"), "s4://…: there is no such storage"),
        (("runs", "--runs", "s3:/b/runs"), "write an address as text, like s3://bucket/path"),
        (("runs", "--runs", f"s3://me:{SECRET}@b/runs"), "and nothing secret"),
        (("figures", "--out", "s3://b/figures"), "s3://b/figures: this must be on the local"),
        (("replay", "--out", "s3://b/x.parquet"), "s3://b/x.parquet: this must be on the local"),
        (("demo", "--out", "s3://b/demo"), "s3://b/demo: this must be on the local disk"),
        (("grade", "file://host/run"), "write three slashes, like file:"),
        (("pull", "a/b", "--out", "s3:/b/runs"), "write an address as text"),
        (("pull", "a/b", "--out", f"s3://me:{SECRET}@b/runs"), "and nothing secret"),
        (("push", "s4://b/runs", "a/b"), "s4://…: there is no such storage"),
        (("export", "s3:/b/run"), "write an address as text"),
        (("export", "run", "--out", "s4://b/steps.jsonl"), "s4://…: there is no such storage"),
        (("import", "klass", "s3://b/x"), "s3://b/x: this must be on the local disk"),
        (("import", "klass", "x", "--out", "s3:/b/x.parquet"), "write an address as text"),
    ],
)
def test_what_is_no_place_for_it_is_refused_and_makes_nothing(
    command, message, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    result = c4(*command)
    assert result.exit_code == 2
    assert message in " ".join(result.stderr.split())
    assert SECRET not in result.output
    assert not list(tmp_path.iterdir())


def commands(group):
    """Every command with its function, those of groups included."""
    for command in group.registered_commands:
        yield command.name or command.callback.__name__, command.callback
    for inner in group.registered_groups:
        yield from commands(inner.typer_instance)


def is_path(hint):
    """Whether a parameter's type is a path, or one among others."""
    inside = any(is_path(argument) for argument in typing.get_args(hint))
    return inside or (isinstance(hint, type) and issubclass(hint, PurePath))


COMMANDS = dict(commands(app))


@pytest.mark.parametrize("name", COMMANDS)
def test_no_command_takes_an_address_for_a_folder(name):
    """A plain path would make a folder named `s3:` of an address."""
    known = [place["parser"] for place in (ANY_PLACE, LOCAL_PLACE)]
    for parameter in inspect.signature(COMMANDS[name], eval_str=True).parameters.values():
        if is_path(parameter.annotation):
            options = getattr(parameter.annotation, "__metadata__", ())
            parsers = [getattr(option, "parser", None) for option in options]
            assert any(parser in known for parser in parsers), f"{name}: {parameter.name}"


def test_a_bucket_that_is_not_there_is_an_error_before_anything_is_decoded(bucket, options):
    result = c4("record", *options, "--out", "s3://no-such-bucket/runs")
    assert result.exit_code == 2
    assert "there is no such bucket" in " ".join(result.stderr.split())
