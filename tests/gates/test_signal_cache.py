"""Signals are computed once and kept beside the run, and a cache is trusted only if it is good."""

import importlib
import logging
import os
import shutil
import sys
from dataclasses import fields, replace

import numpy as np
import pytest
from typer.testing import CliRunner

from c4.cli.app import app
from c4.gates import run_signals as cache_module
from c4.gates.run_signals import load_signals, stack_signals
from c4.gates.signals import Signals
from c4.record.plan import RunConfig
from c4.store.manifest import run_folder
from c4.store.parts import list_parts
from c4.store.runs import open_run
from c4.store.writer import RunWriter
from c4.tasks import TASKS, AnswerReading, Candidate, ReadingStyle, SearchMode
from tests.recordings import record


@pytest.fixture(scope="module")
def runs(random_llada, tmp_path_factory):
    """Recordings of two families by a random model."""
    root = tmp_path_factory.mktemp("runs")
    for task in ("gsm8k", "mmlu"):
        config = RunConfig(
            task=task, model=str(random_llada), source="embedded", n=6, skip=37, out=root
        )
        record(config)
    return root


def run_of(runs, task):
    return open_run(run_folder(runs, "random-llada", task, "baseline"))


def equal(first, second):
    return (
        all(
            np.array_equal(getattr(first.signals, f.name), getattr(second.signals, f.name), True)
            for f in fields(Signals)
        )
        and first.candidates == second.candidates
    )


def test_signals_come_from_the_cache_the_second_time(runs, monkeypatch):
    run = run_of(runs, "mmlu")
    first = stack_signals(list(load_signals(run)))
    monkeypatch.setattr(cache_module, "read_signals", None)  # would fail if anything were read
    assert equal(stack_signals(list(load_signals(run))), first)


@pytest.mark.parametrize("harm", ["damage", "stale code", "other tail"])
def test_a_cache_that_cannot_be_trusted_is_rebuilt(runs, monkeypatch, harm):
    run = run_of(runs, "gsm8k")
    first = stack_signals(list(load_signals(run)))
    (cached,) = list_parts(run.folder / "signals")
    if harm == "damage":
        cached.path.write_bytes(cached.path.read_bytes()[:-9])
    elif harm == "stale code":
        monkeypatch.setattr(cache_module, "code_hash", lambda: "another version")
    computed = []
    real = cache_module.read_signals
    monkeypatch.setattr(
        cache_module, "read_signals", lambda *args: computed.append(1) or real(*args)
    )
    again = stack_signals(list(load_signals(run, 0.5 if harm == "other tail" else 0.3)))
    assert len(computed) == 1  # one part
    assert equal(again, first) == (harm != "other tail")
    assert len(list_parts(run.folder / "signals")) == 1


def test_signals_of_pending_trajectories_go_when_their_part_is_sealed(
    random_llada, tmp_path, monkeypatch
):
    config = RunConfig(task="mmlu", model=str(random_llada), source="embedded", n=3, out=tmp_path)
    plain = AnswerReading(ReadingStyle.PLAIN)
    with monkeypatch.context() as unsealed:
        unsealed.setattr(RunWriter, "seal_part", lambda self, part, claim: False)
        record(config)
    run = run_of(tmp_path, "mmlu")
    list(load_signals(run))
    list(load_signals(open_run(run.folder, plain)))
    assert len(list_parts(run.folder / "signals")) == 6
    record(config)
    list(load_signals(run_of(tmp_path, "mmlu")))
    ranges = [len(part.trajectories) for part in list_parts(run.folder / "signals")]
    assert sorted(ranges) == [1, 1, 1, 3]  # those of the other reading stay
    list(load_signals(open_run(run.folder, plain)))
    ranges = [len(part.trajectories) for part in list_parts(run.folder / "signals")]
    assert ranges == [3, 3]


def always_x(text, choices=()):
    return Candidate("x", 0, len(text))


@pytest.mark.parametrize("change", [{"extract": always_x}, {"search": SearchMode.FIRST5}])
def test_a_task_that_looks_for_answers_otherwise_gets_other_signals(runs, monkeypatch, change):
    run = run_of(runs, "gsm8k")
    first = stack_signals(list(load_signals(run)))
    with monkeypatch.context() as changed:
        changed.setitem(TASKS, "gsm8k", replace(TASKS["gsm8k"], **change))
        other = stack_signals(list(load_signals(run_of(runs, "gsm8k"))))
    assert not equal(other, first)
    if "extract" in change:
        assert all(values == ["x"] for values in other.candidates)
    assert equal(stack_signals(list(load_signals(run))), first)


def test_editing_a_task_s_extractor_makes_its_signals_anew(runs, monkeypatch, tmp_path):
    source = "from c4.tasks import Candidate\ndef own(text, choices=()):\n"
    source += "    return Candidate('{}', 0, len(text))\n"
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)  # two edits within a second
    for value in ("before", "after"):
        (tmp_path / "own_extractor.py").write_text(source.format(value))
        module = importlib.reload(importlib.import_module("own_extractor"))
        monkeypatch.setitem(TASKS, "gsm8k", replace(TASKS["gsm8k"], extract=module.own))
        signals = stack_signals(list(load_signals(run_of(runs, "gsm8k"))))
        assert all(values == [value] for values in signals.candidates)


def test_signals_that_cannot_be_kept_are_computed_each_time(runs, tmp_path, caplog):
    shutil.copytree(runs, tmp_path / "runs")
    run = run_of(tmp_path / "runs", "mmlu")
    shutil.rmtree(run.folder / "signals", ignore_errors=True)
    (run.folder / "signals").write_text("")  # no folder can be made here, be it by root
    caplog.set_level(logging.INFO, "c4")
    for _ in range(2):
        expected = stack_signals(list(load_signals(run_of(runs, "mmlu"))))
        caplog.clear()
        assert equal(stack_signals(list(load_signals(run))), expected)
        assert f"{run.folder}: signals are not kept" in caplog.text
    replayed = CliRunner().invoke(app, ["replay", "--runs", str(run.folder), "--gate", "cvee"])
    assert replayed.exit_code == 0


def test_signals_are_kept_though_another_command_clears_up_meanwhile(runs, tmp_path, monkeypatch):
    shutil.copytree(runs, tmp_path / "runs")
    run = run_of(tmp_path / "runs", "mmlu")
    shutil.rmtree(run.folder / "signals", ignore_errors=True)
    flush, taken = os.fsync, []

    def taken_for_a_leftover(descriptor):
        flush(descriptor)
        if len(taken) < 2:
            taken.extend((run.folder / "signals").glob("*.tmp"))
            for file in (run.folder / "signals").glob("*.tmp"):
                file.unlink()

    with monkeypatch.context() as at_once:
        at_once.setattr(os, "fsync", taken_for_a_leftover)
        first = stack_signals(list(load_signals(run)))
    assert len(taken) == 2
    monkeypatch.setattr(cache_module, "read_signals", None)  # would fail if anything were read
    assert equal(stack_signals(list(load_signals(run))), first)
