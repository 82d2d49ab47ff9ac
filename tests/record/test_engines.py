"""Engines start workers, which give the same command again, and replace the dead."""

import json
import sys
import time
from dataclasses import dataclass, replace
from itertools import count

import pytest
from typer.testing import CliRunner

from c4.cli.app import app
from c4.cli.engines import give_again
from c4.cli.watch import progress_line
from c4.errors import C4Error, ConfigError
from c4.record.engines import EngineChoice, open_engine, supervise
from c4.record.engines.local import LocalEngine
from c4.record.engines.worker import (
    DONE,
    FAILED,
    REFUSED,
    Command,
    Ended,
    Worker,
    this_worker,
)
from c4.record.plan import RunConfig, plan_recording
from c4.record.progress import Progress, ProgressWatch
from c4.record.recorder import start_recording
from c4.record.regrade import GradingWatch, regrade
from c4.store.claims import Claims, Sign
from c4.store.grades import newest_grade
from c4.store.runs import open_run
from c4.tasks import AnswerReading, ReadingStyle
from tests.recordings import carry_out, contents, record

KILLER = """
import os, pathlib, signal, sys
mark = pathlib.Path(sys.argv[1])
if not mark.exists():
    mark.touch()
    os.kill(os.getpid(), signal.SIGKILL)
"""
"""A program that kills itself the first time."""


@pytest.fixture
def config(random_llada, tmp_path):
    model = str(random_llada)
    return RunConfig(
        task="gsm8k", model=model, source="embedded", n=6, skip=0, out=tmp_path / "runs"
    )


def words(config, *more):
    """The command that records a configuration."""
    where = ["--model", config.model, "--source", "embedded", "--out", str(config.out)]
    return ["record", "--task", config.task, "--n", str(config.n), "--skip", "0", *where, *more]


@dataclass
class ScriptedEngine:
    """Workers that end as they are told, one after another."""

    endings: list[Ended]
    name: str = "scripted"
    devices: tuple[str, ...] = ("cpu",)
    poll_seconds: float = 0.0
    started: int = 0
    stopped: bool = False

    def start(self, workers):
        self.started += len(workers)
        return [self for _ in workers]

    def stop(self, jobs):
        self.stopped = True

    def done(self):
        return True

    def result(self):
        return self.endings.pop(0)


def test_a_worker_that_is_killed_is_replaced(tmp_path):
    command = Command([str(tmp_path / "mark")], give_again)
    engine = LocalEngine(command, ["cpu"], [sys.executable, "-c", KILLER])
    failures = supervise(engine, [], lambda: 0)
    assert list(failures.values()) == ["ended by signal 9 (Killed), perhaps because memory ran out"]


@pytest.mark.parametrize(("engine", "workers"), [("local", 2), ("slurm", 1)])
def test_workers_of_an_engine_record_what_one_process_records(config, tmp_path, engine, workers):
    alone = replace(config, out=tmp_path / "alone")
    other, _ = record(alone)
    asked = ["--engine", engine, "--workers", str(workers), "--device", "cpu"]
    if engine == "slurm":
        asked += ["--slurm", "cluster=local", "--slurm", f"folder={tmp_path / 'log'}"]
    done = CliRunner().invoke(app, words(config, *asked))
    assert done.exit_code == 0, done.output
    assert "6 trajectories" in done.stdout
    folder = plan_recording(config).folder
    assert contents(folder) == contents(other)
    names = {path.name for path in folder.iterdir()}
    assert names == {"manifest.json", "tokenizer.json", "rows", "cells", "pending"}


def test_an_error_that_all_workers_would_meet_ends_the_work():
    engine = ScriptedEngine([Ended(REFUSED, "it was recorded with other settings")])
    with pytest.raises(C4Error, match="recorded with other settings"):
        supervise(engine, [], lambda: 0)
    assert engine.stopped
    assert engine.started == 1


def test_workers_that_die_one_after_another_are_given_up():
    engine = ScriptedEngine([Ended(FAILED, "no memory")] * 10)
    with pytest.raises(C4Error, match=r"5 workers died one after another.*no memory"):
        supervise(engine, [], lambda: 0)
    counts = iter(range(100))
    engine = ScriptedEngine([*[Ended(FAILED, "no memory")] * 10, Ended(DONE)])
    supervise(engine, [], lambda: next(counts))  # something gets done between two deaths
    assert engine.started == 11


def test_a_worker_says_whether_another_may_go_on(config, monkeypatch, tmp_path):
    def work(*given):
        return Command(given, give_again).work(Worker(engine="test", device="cpu", reports=False))

    monkeypatch.setenv("C4_WORKER", "")
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    assert work(*words(config)) == Ended(DONE)
    refused = work(*words(config, "--seed", "3"))
    assert refused.code == REFUSED
    assert "seed: 0 there, 3 here" in refused.reason
    monkeypatch.setattr("c4.record.recorder.decode", None)
    failed = work(*words(replace(config, n=7)))
    assert failed.code == FAILED
    assert failed.reason.startswith("TypeError: ")
    assert open_run(plan_recording(config).folder).indices == [0, 1, 2, 3, 4, 5]


@pytest.mark.parametrize(
    ("stderr", "reason"),
    [
        ("WARNING  old\nerror: no such task\n  try mmlu\n", "no such task\n  try mmlu"),
        ("Traceback:\n  line 3\nRuntimeError: no memory\n", "RuntimeError: no memory"),
        ("", "ended with code 1"),
    ],
)
def test_the_reason_of_an_end_is_read_from_stderr(stderr, reason):
    assert Ended.of(FAILED, stderr) == Ended(FAILED, reason)


def test_several_workers_grade_every_answer_once(config):
    plan = plan_recording(replace(config, graded=False))
    carry_out(plan)
    plain = AnswerReading(ReadingStyle.PLAIN)
    since = newest_grade(plan.folder, open_run(plan.folder).manifest.digest)
    watch = GradingWatch(open_run(plan.folder, plain), set(range(6)), since)
    assert (watch.look().done, watch.look().wanted) == (0, 6)
    graded = [number for number, _ in regrade(plan.folder, plain, everything=True, since=since)]
    assert sorted(graded) == [0, 1, 2, 3, 4, 5]
    assert watch.look().done == 6
    assert list(regrade(plan.folder, plain, everything=True, since=since)) == []
    assert all(row.verdict is not None for row in open_run(plan.folder, plain).rows())


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (["--engine", "dask"], "no engine named 'dask'"),
        (["--ray-address", "auto"], "--ray-address is for --engine ray"),
        (["--slurm", "partition=gpu"], "--slurm is for --engine slurm"),
        (["--engine", "slurm", "--slurm", "partition"], "give NAME=VALUE"),
        (["--engine", "slurm", "--device", "cuda:0,cuda:1"], "several devices are for"),
        (["--engine", "local", "--device", "cpu,cuda"], "cuda"),
    ],
)
def test_engines_that_cannot_be_meant_are_refused(tmp_path, asked, said):
    args = ["record", "--task", "mmlu", "--n", "1", "--out", str(tmp_path / "runs"), *asked]
    result = CliRunner().invoke(app, args)
    assert result.exit_code == 2
    assert said in result.stderr
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize(("engine", "library"), [("ray", "ray"), ("slurm", "submitit")])
def test_an_engine_that_is_not_installed_names_its_extra(monkeypatch, engine, library):
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(ConfigError, match=rf"pip install 'c4-dlm\[{engine}\]'"):
        open_engine(EngineChoice(engine), Command([], give_again))


@pytest.mark.parametrize(
    ("environment", "engine", "reports", "device"),
    [
        ({}, "", True, "auto"),
        ({"RANK": "3", "LOCAL_RANK": "1", "WORLD_SIZE": "4"}, "rank 3", False, "cuda:1"),
        ({"RANK": "0", "LOCAL_RANK": "0", "WORLD_SIZE": "4"}, "", True, "cuda:0"),
        (
            {"SLURM_PROCID": "5", "SLURM_LOCALID": "1", "SLURM_NTASKS": "8"},
            *("rank 5", False, "cuda:1"),
        ),
        ({"SLURM_PROCID": "0", "SLURM_NTASKS": "1"}, "", True, "auto"),
        ({"RANK": "x", "WORLD_SIZE": "2"}, "", True, "auto"),
    ],
)
def test_a_rank_chooses_the_device_and_who_reports(environment, engine, reports, device):
    worker = this_worker(environment)
    assert (worker.engine, worker.reports) == (engine, reports)
    assert worker.choose_gpu("auto", 2) == device
    assert worker.choose_gpu("cpu", 2) == "cpu"
    assert worker.choose_gpu("auto", 1) == "auto"


def test_a_worker_is_told_who_it_is_by_its_environment():
    worker = Worker(engine="ray", device="cuda", reports=False, since=3)
    assert this_worker(worker.environment()) == worker


def test_only_the_first_rank_reports(config, monkeypatch):
    for name, value in {"RANK": "1", "LOCAL_RANK": "1", "WORLD_SIZE": "2"}.items():
        monkeypatch.setenv(name, value)
    args = words(replace(config, n=2))
    result = CliRunner().invoke(app, args)
    assert (result.exit_code, result.output) == (0, "")
    assert len(open_run(plan_recording(config).folder)) == 2
    refused = CliRunner().invoke(app, [*args, "--fresh"])
    assert "give the command to one process first" in refused.stderr


def test_progress_counts_what_is_safe_and_who_is_alive(config):
    clock = iter(range(0, 1000, 60))
    plan = plan_recording(config)
    watch = ProgressWatch(plan.folder, clock=lambda: now)
    now = next(clock)
    assert (watch.look().done, watch.look().workers) == (0, 0)
    with start_recording(plan) as recording:
        rows = iter(recording)
        next(rows)
        now = next(clock)
        seen = watch.look()
        assert (seen.workers, seen.wanted) == (1, 6)
        assert seen.done in (1, 2, 3)
        assert seen.per_minute == seen.done
        assert seen.eta_seconds == 60 * (6 - seen.done) / seen.done
        list(rows)
    now = next(clock)
    assert (watch.look().done, watch.look().left, watch.look().workers) == (6, 0, 0)


def test_watching_shows_workers_of_other_machines_until_they_are_gone(config, monkeypatch):
    plan = plan_recording(replace(config, n=2))
    carry_out(plan)
    other = Claims(plan.folder, Sign(process="", wanted=9))
    other.report()
    monkeypatch.setattr("c4.cli.watch.SECONDS_BETWEEN_LOOKS", 0)
    monkeypatch.setenv("C4_LEASE", "0.1")
    result = CliRunner().invoke(app, ["runs", "--watch", "--runs", str(config.out), "--json"])
    assert result.exit_code == 0, result.output
    first, *_, last = [json.loads(line) for line in result.stdout.splitlines()]
    assert (first["done"], first["wanted"], first["workers"]) == (2, 9, 1)
    assert last == {"runs": 1, "workers": 0}


def test_watching_waits_for_the_first_worker(config, monkeypatch):
    plan = plan_recording(replace(config, n=2))
    looks, sleep = count(), time.sleep

    def pass_time(_):
        """The run appears while somebody waits for it, and its worker ends some looks later."""
        sleep(0.02)
        if next(looks) == 1:
            carry_out(plan)
            Claims(plan.folder, Sign(process="", wanted=2)).report()

    monkeypatch.setattr("c4.cli.watch.time.sleep", pass_time)
    monkeypatch.setenv("C4_LEASE", "0.1")
    result = CliRunner().invoke(app, ["runs", "--watch", "--runs", str(config.out)])
    assert result.exit_code == 0, result.output
    assert f"no run below {config.out} yet; waiting for one" in result.stderr
    assert "2 of 2, 1 worker" in result.stdout
    assert result.stdout.endswith("nobody works on these runs any more\n")


def test_watching_idle_runs_ends_after_a_while(config, monkeypatch):
    record(replace(config, n=1))
    monkeypatch.setattr("c4.cli.watch.SECONDS_BETWEEN_LOOKS", 0.01)
    monkeypatch.setattr("c4.cli.watch.SECONDS_FOR_A_WORKER", 0.05)
    result = CliRunner().invoke(app, ["runs", "--watch", "--runs", str(config.out)])
    assert result.exit_code == 0, result.output
    assert "nobody works on the 1 run below" in result.stderr
    assert result.stdout == f"nobody works on runs below {config.out}\n"


@pytest.mark.parametrize(
    ("done", "workers", "said"),
    [(2, 0, "2 of 4, no worker"), (4, 0, "4 of 4, done"), (3, 1, "3 of 4, 1 worker")],
)
def test_progress_says_who_works(tmp_path, done, workers, said):
    found = Progress(tmp_path, done, 4, workers, None, None)
    assert progress_line(found).endswith(said)
