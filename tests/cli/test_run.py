import json
import re

import pytest

from c4.record.methods import METHODS
from c4.store.runs import find_runs, open_run
from c4.store.timings import read_timings
from tests.commands import c4


@pytest.fixture
def run_args(random_llada, tmp_path):
    options = {"--task": "svamp", "--model": random_llada, "--source": "embedded", "--n": 3}
    return ["run", *(x for pair in options.items() for x in pair), "--out", tmp_path / "runs"]


def test_methods_and_tasks_of_one_call_share_their_examples(run_args, tmp_path):
    args = ("--method", "baseline", "--method", "c4", "--task", "mmlu", "--json")
    result = c4(*run_args, *args)
    assert result.exit_code == 0, result.output
    summaries = json.loads(result.stdout)
    pairs = [(s["task"], s["method"]) for s in summaries]
    assert pairs == [(t, m) for t in ("svamp", "mmlu") for m in ("baseline", "c4")]
    assert [s["saving"] for s in summaries[::2]] == [0, 0]
    assert all(s["n"] == 3 and s["drop_points"] is not None for s in summaries)
    runs = [open_run(folder) for folder in find_runs(tmp_path / "runs")]
    prompts = {(r.task_name, r.method): [row.prompt for row in r.rows()] for r in runs}
    for task in ("svamp", "mmlu"):
        assert prompts[task, "baseline"] == prompts[task, "c4"]


def test_a_table_says_how_a_method_did_and_the_baseline_on_disk_is_compared_with(run_args):
    result = c4(*run_args, "--method", "baseline", "--method", "fast-dllm")
    assert result.exit_code == 0, result.output
    assert "24.0 of 24" in result.stdout
    assert "fast-dllm" in result.stdout
    (summary,) = json.loads(c4(*run_args, "--method", "c4", "--json").stdout)
    assert summary["drop_points"] == 0


def test_a_recording_is_the_baseline(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    recorded = c4("record", "--task", "mmlu", "--n", 2, "--json")
    assert recorded.exit_code == 0, recorded.output
    baseline = json.loads(recorded.stdout)
    assert (baseline["method"], baseline["drop_points"], baseline["identical"]) == (
        "baseline",
        0,
        1,
    )
    result = c4("run", "--method", "c4", "--task", "mmlu", "--n", 2, "--json")
    assert result.exit_code == 0, result.output
    (summary,) = json.loads(result.stdout)
    assert summary["drop_points"] == 100 * (baseline["accuracy"] - summary["accuracy"])
    rows = [open_run(s["folder"]).rows() for s in (baseline, summary)]
    same = [full.answer == own.answer for full, own in zip(*rows, strict=True)]
    assert summary["identical"] == sum(same) / 2


def test_a_recording_is_not_decoded_again_as_a_baseline(run_args, tmp_path):
    assert c4("record", *run_args[1:]).exit_code == 0
    before = {p: p.stat().st_mtime_ns for p in (tmp_path / "runs").rglob("*.parquet")}
    (summary,) = json.loads(c4(*run_args, "--method", "baseline", "--json").stdout)
    assert summary["n"] == 3
    assert {p: p.stat().st_mtime_ns for p in (tmp_path / "runs").rglob("*.parquet")} == before
    assert c4(*run_args, "--method", "baseline", "--n", 4).exit_code == 0
    (folder,) = find_runs(tmp_path / "runs")
    assert len(list(open_run(folder).cells())) == 4  # it goes on keeping every step


def test_results_are_neither_taken_for_a_recording_nor_replayed(run_args, tmp_path):
    assert c4(*run_args, "--method", "baseline").exit_code == 0
    (folder,) = find_runs(tmp_path / "runs")
    unreplayed = c4("replay", "--runs", folder, "--gate", "cvee")
    assert unreplayed.exit_code == 2
    advice = "c4 run --cells --task svamp --method NAME --fresh"
    assert advice in " ".join(unreplayed.stderr.split())
    refused = c4("record", *run_args[1:])
    assert refused.exit_code == 2
    assert "cells: False there, True here" in refused.stderr
    assert c4("record", *run_args[1:], "--fresh").exit_code == 0


def test_a_run_with_its_cells_can_be_replayed(run_args, tmp_path):
    assert c4(*run_args, "--method", "wino", "--cells").exit_code == 0
    (folder,) = find_runs(tmp_path / "runs")
    assert len(open_run(folder)) == 3
    result = c4("replay", "--runs", folder, "--gate", "cvee", "--json")
    assert result.exit_code == 0, result.output
    (summary,) = json.loads(result.stdout)
    assert summary["n"] == 3
    refused = c4("replay", "--runs", folder, "--gate", "c4")
    assert refused.exit_code == 2
    advice = "decode live instead: c4 run --method c4 --task svamp; exit gates"
    assert advice in " ".join(refused.stderr.split())


def test_results_made_without_grades_can_be_graded(run_args, tmp_path):
    assert c4(*run_args, "--method", "c4", "--no-grade").exit_code == 0
    (folder,) = find_runs(tmp_path / "runs")
    result = c4("grade", folder, "--json")
    assert result.exit_code == 0, result.output
    graded = json.loads(result.stdout)
    assert graded["graded"] == 3
    (summary,) = json.loads(c4(*run_args, "--method", "c4", "--json").stdout)
    assert summary["accuracy"] == graded["accuracy"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (["--method", "c4:H=2"], "no method named 'c4:H=2'; give settings with --set c4.H=2"),
        (["--method", "klas"], "no method named 'klas'; did you mean klass"),
        (["--method", "c4", "--task", "gsm9k"], "no task named 'gsm9k'"),
        (["--method", "c4", "--set", "tau=0.5"], "write cctc.tau=0.5 or cvee.tau=0.5"),
        (["--method", "c4", "--set", "H=-2"], "CCTC takes H at least 0"),
        (["--method", "c4", "--method", "cvee", "--label", "x"], "names one method"),
        (["--method", "c4", "--config", "nowhere.json"], "no file nowhere.json"),
    ],
)
def test_bad_input_is_one_clear_error_and_leaves_nothing(run_args, tmp_path, change, message):
    result = c4(*run_args, *change)
    assert result.exit_code == 2
    assert result.stdout == ""
    assert message in " ".join(result.stderr.split())
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize("command", ["run", "bench"])
def test_help_names_every_method(command):
    listed = re.findall(r"[\w+-]+(?=[,;])", c4(command, "--help").stdout)
    assert set(METHODS) <= set(listed)


def test_timing_prints_a_table_and_keeps_it(run_args, tmp_path):
    args = ["bench", *run_args[1:], "--n", 1, "--passes", 2, "--warmups", 0]
    result = c4(*args, "--method", "baseline", "--method", "c4")
    assert result.exit_code == 0, result.output
    assert "1.00×" in result.stdout
    kept = read_timings(tmp_path / "runs").to_pylist()
    assert [row["method"] for row in kept] == ["baseline", "c4"]


def test_timing_without_a_baseline_shows_no_speedup_and_says_why(run_args):
    args = ["bench", *run_args[1:], "--n", 1, "--passes", 1, "--warmups", 0, "--json"]
    result = c4(*args, "--method", "c4")
    (row,) = json.loads(result.stdout)
    assert row["speedup"] is None
    assert "add --method baseline to this call" in result.stderr
