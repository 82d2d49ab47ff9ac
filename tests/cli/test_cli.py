import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path

import pytest

from c4.cli import main as c4_main
from c4.store.cells import SIGNALS
from c4.store.runs import find_runs, open_run
from tests.commands import c4


@pytest.fixture
def record_args(random_llada, tmp_path):
    options = {"--task": "svamp", "--model": random_llada, "--source": "embedded", "--n": 3}
    return ["record", *(x for pair in options.items() for x in pair), "--out", tmp_path / "runs"]


def test_recording_prints_one_line_and_leaves_a_run(record_args, tmp_path):
    result = c4(*record_args, "--skip", 0)
    folder = tmp_path / "runs" / "model=random-llada" / "task=svamp" / "method=baseline"
    assert result.exit_code == 0, result.output
    assert result.stdout.count("\n") == 1
    assert "svamp on random-llada (source=embedded): 3 trajectories, accuracy 0.0%" in result.stdout
    assert str(folder) in result.stdout
    assert find_runs(tmp_path / "runs") == [folder]
    assert open_run(folder).indices == [0, 1, 2]


def test_the_same_command_again_goes_on(record_args, tmp_path):
    c4(*record_args)
    before = {p: p.stat().st_mtime_ns for p in (tmp_path / "runs").rglob("*.parquet")}
    again = c4(*record_args, "--json")
    assert "examples are there; nothing to decode" in again.stderr
    assert before == {p: p.stat().st_mtime_ns for p in (tmp_path / "runs").rglob("*.parquet")}
    summary = json.loads(again.stdout)
    correct = [row.correct for row in open_run(summary["folder"]).rows()]
    assert summary["accuracy"] == sum(correct) / 3
    assert (summary["n"], summary["steps"]) == (3, 24)
    assert summary["bytes"] > 0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (["--task", "gsm9k"], "no task named 'gsm9k'; did you mean gsm8k"),
        (["--gen-length", 30, "--block-length", 8], "30 is not a multiple of block length 8"),
        (["--model", "nope"], "no model 'nope'"),
        (["--source", "nope.jsonl"], "no source 'nope.jsonl'"),
        (["--n", 20000], "use --n of at most 9960"),
        (["--skip", 10000], "use --skip below 10000"),
        (["--device", "abacus"], "device 'abacus' cannot be used here"),
        (["--device", "meta"], "device 'meta' cannot be used here"),
        (["--device", ""], "device '' cannot be used here"),
        (["--seed", -1], "a seed is at least 0, not -1"),
        (["--n", 10**30], "use --n of at most 9960"),
        (["--n", "x"], "Invalid value for '--n'"),
        (["--source", "/"], "cannot read /"),
        (["--dtype", "int1"], "no dtype named 'int1'"),
    ],
)
def test_bad_input_is_one_clear_error_and_leaves_nothing(record_args, tmp_path, change, message):
    result = c4(*record_args, *change)
    assert result.exit_code == 2
    assert result.stdout == ""
    assert message in " ".join(result.stderr.split())
    assert not (tmp_path / "runs").exists()


def test_another_identity_names_what_differs_and_keeps_the_old_run(record_args, tmp_path):
    c4(*record_args)
    result = c4(*record_args, "--seed", 1)
    assert result.exit_code == 2
    assert "seed: 0 there, 1 here" in result.stderr
    assert c4(*record_args, "--seed", 1, "--fresh").exit_code == 0
    assert open_run(find_runs(tmp_path / "runs")[0]).manifest.identity["seed"] == 1


def test_a_length_that_does_not_fit_costs_no_old_run(record_args, tmp_path):
    c4(*record_args)
    before = contents(tmp_path / "runs")
    too_long = ["--gen-length", 3000, "--block-length", 3]
    refused = c4(*record_args, *too_long, "--fresh")
    assert refused.exit_code == 2
    assert "positions, prompt and generation together" in refused.stderr
    assert contents(tmp_path / "runs") == before
    assert c4(*record_args[:-1], tmp_path / "new", *too_long).exit_code == 2
    assert find_runs(tmp_path / "new") == []


def test_runs_lists_and_checks_every_run(record_args, tmp_path):
    c4(*record_args)
    listed = json.loads(c4("runs", "--runs", tmp_path / "runs", "--json").stdout)
    assert [(run["task"], run["method"], run["n"]) for run in listed] == [("svamp", "baseline", 3)]
    sound = c4("runs", "--runs", tmp_path / "runs", "--check")
    assert re.search(r"no damage in \d+ files of 1 run$", sound.stdout.strip())
    damaged = next((tmp_path / "runs").rglob("cells/*.parquet"))
    damaged.write_bytes(damaged.read_bytes()[:-1])
    result = c4("runs", "--runs", tmp_path / "runs", "--check")
    assert result.exit_code == 2
    assert f"{damaged.name}: damaged" in "".join(result.stderr.split("\n"))
    assert "svamp" in c4("runs", "--runs", tmp_path / "runs").stdout  # the rest is still listed


def test_the_version_is_that_of_the_package():
    assert c4("--version").stdout == f"c4 {version('c4-dlm')}\n"


def test_runs_of_an_empty_folder_say_how_to_make_one(tmp_path):
    result = c4("runs", "--runs", tmp_path)
    assert result.exit_code == 2
    assert "make one with: c4 record --task math" in result.stderr


def test_a_place_that_cannot_be_written_is_one_line(record_args, tmp_path):
    (tmp_path / "file").write_text("")
    result = c4(*record_args[:-1], tmp_path / "file" / "runs")
    assert result.exit_code == 2
    assert "file is not a folder; choose another place" in result.stderr
    assert "Traceback" not in result.stderr


def test_grades_can_be_added_by_command(record_args, tmp_path):
    assert "not graded" in c4(*record_args, "--no-grade").stdout
    folder = find_runs(tmp_path / "runs")[0]
    printed = c4("grade", folder).stdout
    correct = [row.correct for row in open_run(folder).rows()]
    assert f"accuracy {sum(correct) / 3:.1%}" in printed


@pytest.mark.parametrize(("command", "name"), [("tasks", "gsm8k"), ("models list", "llada")])
def test_lists_come_as_a_table_and_as_json(command, name):
    words = command.split()
    assert name in c4(*words).stdout
    assert name in [
        entry[words[0].removesuffix("s")] for entry in json.loads(c4(*words, "--json").stdout)
    ]


@contextmanager
def started(args):
    """A command in a process of its own, which is gone afterwards even if the test fails.

    Otherwise a later test would be blamed for the process that this one left running.
    """
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"}
    command = [sys.executable, "-m", "c4.cli", *map(str, args)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, env=environment, stdout=pipe, stderr=pipe, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def contents(root):
    """Rows without times, and cells as lists, of the only run below a folder."""
    (folder,) = find_runs(root)
    run = open_run(folder)
    rows = [
        {name: value for name, value in asdict(row).items() if "seconds" not in name}
        for row in run.rows()
    ]
    cells = [
        (number, [getattr(kept, name).tolist() for name in SIGNALS])
        for number, kept in (run.cells() if run.has_cells else ())
    ]
    return rows, cells


def wait_for_files(root, count, process):
    """Wait until so many trajectories are on disk; os.walk bears that the folder changes."""
    deadline = time.monotonic() + 120
    while process.poll() is None and time.monotonic() < deadline:
        pending = [names for folder, _, names in os.walk(root) if folder.endswith("pending")]
        if sum(name.endswith(".parquet") for names in pending for name in names) >= count:
            return
        time.sleep(0.005)


@pytest.mark.parametrize(
    ("command", "sessions", "n"),
    [
        ("record", 1, 30),
        pytest.param("record", 3, 80, marks=pytest.mark.slow),
        pytest.param("run --method c4", 2, 80, marks=pytest.mark.slow),
    ],
)
def test_a_process_killed_at_random_resumes_to_the_same_run(
    record_args, tmp_path, command, sessions, n
):
    whole = [*command.split(), *record_args[1:], "--n", n]
    args = [*whole, "--out", tmp_path / "killed"]
    for session in range(sessions):
        with started(args) as process:
            wait_for_files(tmp_path / "killed", 5 + 10 * session, process)
            time.sleep(random.random() / 20)
    rows, _ = contents(tmp_path / "killed")
    assert 5 <= len(rows) < n
    with started(args) as process:
        stdout, stderr = process.communicate(timeout=300)
    assert process.returncode == 0, stderr  # a process that decodes ends with its own exit code
    assert f"{n} trajectories" in stdout or command != "record"
    c4(*whole)
    assert contents(tmp_path / "killed") == contents(tmp_path / "runs")
    names = [
        sorted(path.name for path in (tmp_path / root).rglob("cells/*.parquet"))
        for root in ("killed", "runs")
    ]
    assert names[0] == names[1]


def test_ctrl_c_says_how_to_go_on(record_args, tmp_path):
    with started([*record_args, "--n", 300]) as process:
        wait_for_files(tmp_path / "runs", 2, process)
        process.send_signal(signal.SIGINT)
        _, stderr = process.communicate(timeout=300)
    assert process.returncode == 130
    assert "nothing finished is lost: give the same command (without --fresh)" in stderr
    assert "Traceback" not in stderr
    assert len(contents(tmp_path / "runs")[0]) >= 2


def test_a_folder_that_is_not_there_is_no_good_news(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = c4("runs", "--check", "--runs", "nowhere")
    assert result.exit_code == 2
    assert "nowhere: no such folder" in result.stderr


@pytest.mark.parametrize("command", ["export", "grade"])
def test_a_folder_above_several_runs_names_them(command):
    runs = Path(__file__).parents[1] / "data" / "runs" / "v3"
    result = c4(command, runs)
    assert result.exit_code == 2
    assert "v3 holds 2 runs (" in result.stderr
    assert "task=mmlu/method=c4); name one of them" in " ".join(result.stderr.split())


def test_a_folder_above_a_single_run_is_that_run(tmp_path):
    runs = Path(__file__).parents[1] / "data" / "runs" / "v3"
    shutil.copytree(runs / "model=tiny/task=mmlu/method=c4", tmp_path / "runs/method=c4")
    assert len(c4("export", tmp_path / "runs", "--out", "-").stdout.splitlines()) == 3
    assert json.loads(c4("grade", tmp_path / "runs", "--json").stdout)["n"] == 3


def test_an_interrupt_while_libraries_load_is_quiet(monkeypatch):
    def interrupted(*args, **options):
        raise KeyboardInterrupt

    monkeypatch.delitem(sys.modules, "c4.cli.app")
    monkeypatch.setattr("builtins.__import__", interrupted)
    with pytest.raises(SystemExit) as ended:
        c4_main()
    assert ended.value.code == 130
