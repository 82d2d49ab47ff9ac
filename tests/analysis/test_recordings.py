"""What recordings say, held to plain readings of the same cells."""

import json
import re

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal

from c4.analysis import (
    Library,
    evaluate_run,
    phase_table,
    stabilization_table,
    text_table,
    trace_table,
)
from c4.analysis.phases import gate_signals
from c4.errors import RunError
from c4.gates.candidates import filled_predictions
from c4.gates.cvee import CVEE
from c4.gates.oracle import Oracle
from c4.gates.progress import FixedProgress
from c4.gates.prophet import Prophet
from c4.record.plan import RunConfig, plan_methods, plan_recording
from c4.record.recorder import start_recording
from c4.record.settings import MethodChoice
from c4.replay.decisions import replay
from c4.store.runs import find_runs, open_run
from tests.commands import c4, done, refused


@pytest.fixture(scope="module")
def runs(random_llada, tmp_path_factory):
    """Recordings of two families by a random model, some of them of the pool."""
    root = tmp_path_factory.mktemp("runs")
    for task in ("gsm8k", "mmlu"):
        config = RunConfig(
            task=task, model=str(random_llada), source="embedded", n=5, skip=38, out=root
        )
        with start_recording(plan_recording(config)) as recording:
            list(recording)
    return root


@pytest.fixture(scope="module")
def sampled(random_llada, tmp_path_factory):
    """A run of a sampler with every step kept: its trajectories have unequal numbers of them."""
    root = tmp_path_factory.mktemp("sampled")
    config = RunConfig(
        task="gsm8k", model=str(random_llada), source="embedded", n=5, skip=38, out=root
    )
    choice = MethodChoice(["fast-dllm"], ["tau=0.1"])
    (plan,) = plan_methods(config, choice, cells=True)
    with start_recording(plan) as recording:
        list(recording)
    return plan.folder


@pytest.fixture
def run(runs):
    return open_run(runs / "model=random-llada" / "task=gsm8k" / "method=baseline")


@pytest.fixture(params=["full", "sampled"])
def any_run(request, run):
    return run if request.param == "full" else open_run(request.getfixturevalue("sampled"))


def test_the_sampled_trajectories_are_of_unequal_length(sampled):
    steps = {row.steps for row in open_run(sampled).rows()}
    assert len(steps) > 1
    assert max(steps) < 24


def candidates_of(run, trajectory):
    """What is read at each step, in the plainest way."""
    cells = trajectory.cells
    filled = filled_predictions(cells.token, cells.masked)
    start = int(run.shape.length * 0.7)
    read = []
    for row in filled:
        end = run.vocabulary.ending(row.tolist())
        found = run.task.extract(run.text(row.tolist()[start : max(start, end)]))
        read.append(found.value if found else None)
    return read


def test_stabilization_and_first_appearance_are_what_a_plain_reading_finds(any_run):
    run = any_run
    budget = run.shape.budget
    frame = stabilization_table(run)
    for trajectory in run:
        row = frame.filter(pl.col("trajectory") == trajectory.row.trajectory).row(0, named=True)
        read = candidates_of(run, trajectory)
        if read[-1] is None:
            assert row["stabilization"] is None
            assert row["first_appearance"] is None
            continue
        steps = len(read)
        settled = next(u for u in range(steps) if all(v == read[-1] for v in read[u:]))
        assert row["stabilization"] == (settled + 1) / budget
        assert row["first_appearance"] == (read.index(read[-1]) + 1) / budget


def test_the_phase_table_agrees_with_replay(any_run):
    run = any_run
    gates = {"half": FixedProgress(0.5), "cvee": CVEE(tau=0.1, p_min=1), "oracle": Oracle()}
    phases = phase_table(run, gates).sort("trajectory", "gate")
    decisions = pl.concat(replay(run, gates)).sort("trajectory", "gate")
    assert phases["premature"].to_list() == decisions["premature"].to_list()
    assert phases["fired"].to_list() == decisions["fired"].to_list()
    spent = (decisions["steps"] / decisions["budget"]).to_list()
    assert phases["exit"].to_list() == pytest.approx(spent)
    early = phases.filter(pl.col("early_by").is_not_null())
    assert (early["early_by"] > 0).all()


def test_what_a_run_is_judged_by_is_read_at_each_trajectory_s_own_end(sampled):
    run = open_run(sampled)
    expected = [candidates_of(run, trajectory)[-1] is not None for trajectory in run]
    assert evaluate_run(run).located == np.mean(expected)
    settled = stabilization_table(run)["stabilization"].is_not_null()
    assert settled.to_list() == expected


def test_gates_are_asked_about_no_step_that_a_trajectory_lacks(sampled):
    run = open_run(sampled)
    frame = gate_signals([run], {"end": FixedProgress(1.0), "oracle": Oracle()})
    assert not frame["value"].is_nan().any()
    assert "end" not in frame["gate"].drop_nulls().to_list()
    decisions = pl.concat(replay(run, {"end": FixedProgress(1.0)}))
    assert not decisions["fired"].any()
    assert decisions["steps"].to_list() == [row.steps for row in run.rows()]
    longest = max(run.rows(), key=lambda row: row.steps)
    trace = trace_table(run, longest.trajectory, {})
    assert trace["block"].to_list() == sorted(trace["block"].to_list())
    assert trace["block"].max() == run.shape.blocks - 1


def test_a_gate_that_reads_positions_is_drawn_like_any_other(run):
    class Half:
        wants_cells = True

        def fires(self, s, cells):
            return s.step >= len(cells.token) / 2

    assert_frame_equal(
        phase_table(run, {"half": Half()}), phase_table(run, {"half": FixedProgress(0.5)})
    )


def test_gate_signals_are_means_over_the_task_s_region(run):
    frame = gate_signals([run], {"half": FixedProgress(0.5)})
    triggers = frame.filter((pl.col("kind") == "trigger") & (pl.col("signal") == "entropy"))
    tail = int(run.shape.length * 0.7)
    assert triggers["trajectory"].to_list() == [40, 41, 42]
    for trajectory in list(run)[2:]:
        value = triggers.filter(pl.col("trajectory") == trajectory.row.trajectory)["value"].item()
        step = run.shape.budget // 2
        assert value == pytest.approx(trajectory.cells.entropy[step - 1, tail:].mean(), rel=1e-5)
    courses = frame.filter(pl.col("kind") == "course")
    assert courses.height == 3 * run.shape.budget
    assert (courses["low"] <= courses["value"]).all()


def test_a_trace_shows_every_step_and_where_gates_stop(run):
    gates = {"half": FixedProgress(0.5), "prophet": Prophet(high=99, mid=99, low=99)}
    index = run.indices[1]
    trace = trace_table(run, index, gates)
    assert trace["step"].to_list() == list(range(1, run.shape.budget + 1))
    assert trace["candidate"].to_list() == candidates_of(run, run.trajectory(index))
    stops = dict(trace.filter(pl.col("exits") != "").select("step", "exits").iter_rows())
    assert stops == {run.shape.budget // 2: "half"}
    with pytest.raises(RunError, match="no trajectory 999"):
        trace_table(run, 999, gates)


def test_texts_are_the_buffers_that_replay_fills(run):
    gates = {"half": FixedProgress(0.5)}
    texts = text_table(run, run.indices[0], gates)
    decision = pl.concat(replay(run, gates)).row(0, named=True)
    half = texts.filter(pl.col("method") == "half")
    assert "".join(half["piece"]) == decision["text"]
    assert half["answer"][0] == decision["answer"]
    cells = run.trajectory(run.indices[0]).cells
    masked = cells.masked[run.shape.budget // 2 - 1][: half.height]
    assert half["filled"].to_list() == masked.tolist()
    full = texts.filter(pl.col("method") == "baseline")
    assert not full["filled"].any()


def test_evidence_leaves_out_the_pool_and_reads_each_run_once(runs):
    notes = []
    library = Library(runs, gates=["progress"], note=notes.append)
    assert library.phases["trajectory"].min() == 40
    assert library.settling["trajectory"].min() == 40
    moments = library.gate_signals.filter(pl.col("kind") != "course")
    assert moments["trajectory"].min() >= 40
    assert library.outcomes.group_by("task", "method").len()["len"].to_list() == [3] * 4
    count = len(notes)
    assert library.phases is library.phases
    assert len(notes) == count


def test_some_tasks_or_models_can_be_asked_for(runs):
    assert {r.task_name for r in Library(runs, tasks=["mmlu"]).runs} == {"mmlu"}
    assert Library(runs, model="llada").runs == []


def test_figures_are_written_with_their_data(runs, tmp_path):
    result = done("figures", "phase-diagram", "text", "--runs", runs, "--out", tmp_path, "--json")
    drawn = json.loads(result.stdout.splitlines()[-1])["drawn"]
    assert sorted(drawn) == ["phase-diagram", "text"]
    assert (tmp_path / "phase-diagram.png").read_bytes().startswith(b"\x89PNG")
    pdf = (tmp_path / "phase-diagram.pdf").read_bytes()
    assert b"/FontFile2" in pdf or b"/ObjStm" in pdf
    data = pl.read_csv(tmp_path / "phase-diagram.csv")
    assert set(data["gate"]) == {"cvee", "prophet", "sched"}


def test_a_figure_without_data_says_what_makes_it(runs, tmp_path):
    result = done("figures", "h-sweep", "stabilization", "--runs", runs, "--out", tmp_path)
    assert "h-sweep: skipped, there is no data for it; make it with: c4 run" in result.stderr
    assert not (tmp_path / "h-sweep.png").exists()


def test_equal_figures_are_equal_files_as_wide_as_a_column_or_a_page(runs, tmp_path):
    drawn = {}
    for folder, width in (("a", "column"), ("b", "column"), ("c", "page")):
        args = ["--runs", runs, "--out", tmp_path / folder, "--width", width, "--format", "svg"]
        done("figures", "stabilization", *args)
        drawn[folder] = (tmp_path / folder / "stabilization.svg").read_text()
    assert drawn["a"] == drawn["b"]
    widths = [re.search(r'width="([\d.]+)pt"', drawn[folder])[1] for folder in "ac"]
    assert widths == ["244.8", "504"]


@pytest.mark.parametrize("content", ["{", "[]", '{"gate": "cvee"}', None])
def test_a_file_that_is_no_calibration_is_refused(runs, tmp_path, content):
    path = tmp_path / "other.json"
    if content is not None:
        path.write_text(content)
    said = refused("report", "calibration", "--runs", runs, "--calibration", path)
    assert ("no file" if content is None else "not a file that `c4 calibrate` wrote") in said


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["figures", "fase"], "no figure named 'fase'"),
        (["figures", "--format", "gif"], "no format named 'gif'"),
        (["report", "mane"], "no report named 'mane'; did you mean main"),
        (["report", "--task", "gsm9k"], "no task named 'gsm9k'; did you mean gsm8k"),
        (["figures", "--task", "gsm9k"], "no task named 'gsm9k'; did you mean gsm8k"),
        (["report", "--runs", "nowhere"], "nowhere: no such folder; start with: c4 record"),
        (["report", "--runs", "imported.parquet"], "imported.parquet: no such file"),
        (["figures", "--runs", "imported.parquet"], "imported.parquet: no such file"),
    ],
)
def test_what_cannot_be_meant_is_one_clear_error(runs, args, message):
    more = [] if "--runs" in args else ["--runs", runs]
    assert message in refused(*args, *more)


def test_a_report_has_dashes_and_says_what_is_missing(runs):
    result = done("report", "main", "--runs", runs)
    assert "| MMLU | C4 |" not in result.stdout
    everything = c4("report", "main", "--runs", runs, "--all").stdout
    (line,) = [x for x in everything.splitlines() if "| MMLU | C4 |" in x]
    assert line.count("–") == 9
    assert "mmlu on random-llada: slowfast, klass, wino, c4 (run: c4 run --m" in result.stdout
    assert "mmlu on random-llada: timings of baseline, prophet" in result.stdout
    assert "may have seen them: 2 of mmlu, 2 of gsm8k" in result.stdout


def test_a_report_comes_in_every_format(runs):
    rows = json.loads(c4("report", "stabilization", "--runs", runs, "--json").stdout)
    assert [table["name"] for table in rows] == ["stabilization", "phases"]
    latex = c4("report", "paired", "--runs", runs, "--format", "latex").stdout
    assert r"\begin{tabular}" in latex
    assert r"\caption{" in latex
    csv = c4("report", "paired", "--runs", runs, "--format", "csv").stdout
    body = "\n".join(line for line in csv.splitlines() if not line.startswith("#"))
    assert pl.read_csv(body.encode())["method"].to_list()[0] == "prophet"


def test_every_report_can_be_made_of_recordings_alone(runs):
    result = done("report", "--runs", runs, "--against", "paper", "--task", "mmlu")
    assert np.all([name in result.stdout for name in ("Ablation", "calibrations cost")])
    assert "published numbers: there are none that compare with these rows" in result.stdout
    assert "mmlu on random-llada (not a model of the paper)" in result.stdout


def test_only_graded_answers_are_counted_as_right_or_wrong(random_llada, tmp_path):
    common = ["--task", "mmlu", "--model", random_llada, "--source", "embedded", "--out", tmp_path]
    done("record", "--n", 3, *common, "--no-grade")
    (folder,) = find_runs(tmp_path)
    blank = evaluate_run(open_run(folder))
    assert (blank.n, blank.graded, blank.accuracy, blank.interval) == (3, 0, None, None)
    done("record", "--n", 5, *common)
    run = open_run(folder)
    right = [row.correct for row in run.rows() if row.correct is not None]
    some = evaluate_run(run)
    assert (some.n, some.graded, some.accuracy) == (5, 2, sum(right) / 2)
    shown = c4("models", "eval", random_llada, "--task", "mmlu", "--n", 5, "--out", tmp_path)
    assert "Not graded, so not counted: 3 of mmlu" in shown.stdout
