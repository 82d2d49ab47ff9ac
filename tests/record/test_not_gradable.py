"""What the machine failed to grade is never a wrong answer, is counted, and is tried again."""

import json

import pytest
from typer.testing import CliRunner

from c4.cli.app import app
from c4.store.manifest import run_folder
from c4.store.runs import open_run
from c4.tasks import Grade, Verdict
from c4.tasks.sandbox.run import Outcome, RunEnd

N = 4


class Machine:
    """A grader to which every answer is right, on a machine that fails at some."""

    def __init__(self):
        self.broken = set()
        self.asked = []

    def fails(self, example):
        return any(example.prompt == prompt for prompt in self.broken)

    def grade(self, task, example, text, reading=None, *, unsafe_code=False):
        self.asked.append(example.prompt)
        return Grade("a", Verdict.NOT_GRADABLE if self.fails(example) else Verdict.RIGHT)


@pytest.fixture
def machine(monkeypatch):
    machine = Machine()
    for module in ("record.recorder", "record.regrade", "replay.grader"):
        monkeypatch.setattr(f"c4.{module}.grade", machine.grade)
    return machine


def call(*args, code=0):
    embedded = ["--source", "embedded"] if args[0] in ("record", "run", "verify") else []
    result = CliRunner().invoke(app, [str(arg) for arg in (*args, *embedded)])
    assert result.exit_code == code, result.output
    return result


def c4(*args, code=0):
    """What a command says, in one line."""
    return " ".join(call(*args, code=code).output.split())


def c4_json(*args):
    return json.loads(call(*args, "--json").stdout)


@pytest.fixture
def folder(random_llada, tmp_path, machine):
    """A recording of which the machine failed to grade the second example."""
    args = ["record", "--task", "humaneval", "--model", random_llada, "--n", N, "--unsafe-code"]
    c4(*args, "--no-grade", "--out", tmp_path)
    folder = run_folder(tmp_path, "random-llada", "humaneval", "baseline")
    machine.broken = {list(open_run(folder).rows())[1].prompt}
    c4("grade", folder, "--unsafe-code")
    return folder


def test_a_recording_says_how_many_answers_are_not_gradable(random_llada, tmp_path, machine):
    args = ["record", "--task", "humaneval", "--model", random_llada, "--unsafe-code"]
    c4(*args, "--n", 1, "--out", tmp_path)
    folder = run_folder(tmp_path, "random-llada", "humaneval", "baseline")
    machine.broken = {row.prompt for row in open_run(folder).rows()}
    said = c4(*args, "--n", 1, "--out", tmp_path, "--fresh")
    assert "not graded, 1 not gradable (c4 grade tries them again)" in said


def test_it_is_left_out_of_the_accuracy_and_counted(folder, tmp_path):
    (summary,) = c4_json("runs", "--runs", tmp_path)
    assert (summary["n"], summary["graded"], summary["not_gradable"]) == (N, N - 1, 1)
    assert summary["accuracy"] == 1
    said = c4("runs", "--runs", tmp_path)
    assert "not gradable, because the machine failed, and counted neither as right nor" in said
    assert "(c4 grade tries them again)" in said


def test_it_alone_is_graded_again(folder, machine):
    machine.broken, machine.asked = set(), []
    said = c4("grade", folder, "--unsafe-code")
    assert len(machine.asked) == 1
    assert "not gradable" not in said
    assert [row.correct for row in open_run(folder).rows()] == [True] * N


def test_a_failure_takes_no_verdict_away(folder, machine):
    machine.broken = {row.prompt for row in open_run(folder).rows()}
    machine.asked = []
    c4("grade", folder, "--unsafe-code", "--all")
    assert len(machine.asked) == N
    verdicts = [row.verdict for row in open_run(folder).rows()]
    assert verdicts == ["right", "not gradable", "right", "right"]


def test_replay_compares_what_is_gradable_on_both_sides(folder, tmp_path):
    args = ["replay", "--runs", tmp_path, "--gate", "progress", "--unsafe-code"]
    (row,) = c4_json(*args)
    assert (row["n"], row["not_gradable"]) == (N, 1)
    assert (row["accuracy"], row["full_accuracy"]) == (1, 1)
    said = c4(*args)
    assert "not gradable, because the machine failed" in said
    assert "1 of random-llada humaneval baseline progress" in said


def test_calibration_leaves_it_out_for_every_setting_and_says_so(folder, tmp_path):
    out = tmp_path / "calibration.json"
    args = ["calibrate", "--runs", tmp_path, "--task", "humaneval", "--gate", "progress"]
    args += ["--pool", N - 1, "--out", out, "--unsafe-code"]
    summary = c4_json(*args)
    assert summary["statement"].startswith("on 2 pool trajectories this setting loses at most 0.0")
    left_out = "left out, because the machine failed to grade them: 1 of humaneval"
    assert summary["statement"].endswith(left_out)
    (held_out,) = summary["held_out"]
    assert (held_out["n"], held_out["not_gradable"], held_out["accuracy"]) == (1, 0, 1)
    frozen = json.loads(out.read_text())
    assert frozen["not_gradable"] == {"humaneval": 1}
    assert {row["accuracy_humaneval"] for row in frozen["table"]} == {1.0}
    assert left_out in c4(*args)


def test_calibration_refuses_where_nothing_could_be_graded(folder, machine, tmp_path):
    machine.broken = {row.prompt for row in open_run(folder).rows()}
    args = ["calibrate", "--runs", tmp_path, "--task", "humaneval", "--gate", "progress"]
    args += ["--pool", 2, "--out", tmp_path / "calibration.json", "--unsafe-code"]
    said = c4(*args, code=2)
    assert "the machine failed to grade any of the 2 trajectories of humaneval" in said
    assert not (tmp_path / "calibration.json").exists()


def test_tables_leave_it_out_and_count_it(folder, random_llada, machine, tmp_path):
    args = ["run", "--method", "fast-dllm", "--task", "humaneval", "--model", random_llada]
    said = c4(*args, "--n", N, "--out", tmp_path, "--unsafe-code")
    assert "not gradable, because the machine failed" in said
    for table in ("main", "paired"):
        report = c4("report", table, "--runs", tmp_path, "--unsafe-code")
        assert "not gradable" in report
    (paired,) = c4_json("report", "paired", "--runs", tmp_path, "--unsafe-code")
    (row,) = (row for row in paired["rows"] if row["method_label"] == "Fast-dLLM")
    assert (row["n"], row["not_gradable"], row["identical"]) == (N - 1, 1, 1.0)


def test_evaluation_of_a_model_leaves_it_out_and_says_so(folder, random_llada, tmp_path):
    args = ["models", "eval", random_llada, "--task", "humaneval", "--n", N, "--out", tmp_path]
    said = c4(*args)
    assert "| humaneval | 4 | 100% |" in said
    assert "nor as wrong: 1 of humaneval (c4 grade FOLDER tries them again)" in said


def test_verification_takes_it_for_no_difference(random_llada, machine, monkeypatch):
    monkeypatch.setattr(machine, "fails", lambda example: True)
    args = ["verify", "--task", "humaneval", "--model", random_llada, "--n", 2, "--gate", "cvee"]
    said = c4(*args, "--unsafe-code")
    assert "2 of 2 live decodes" in said
    assert "2 of them without a grade, because the machine failed to give one" in said


@pytest.mark.parametrize("end", RunEnd)
@pytest.mark.parametrize("kind", ["program", "formula"])
def test_only_a_failure_of_the_machine_is_not_gradable(end, kind, monkeypatch):
    from c4.tasks import TASKS, AnswerReading, Example, Grader, grade

    outcome = Outcome(end, "because")
    monkeypatch.setattr("c4.tasks.grading.run_program", lambda *a, **k: outcome)
    monkeypatch.setattr("c4.tasks.grading.compare_formulas", lambda *a, **k: outcome)
    if kind == "program":
        example = Example("", "def f(n): return n", tests="assert f(1) == 1")
        given = grade(TASKS["mbpp"], example, "def f(n):\n    return n\n")
    else:
        reading = AnswerReading(grader=Grader.MATH_VERIFY)
        given = grade(TASKS["math"], Example("", "2x+1"), r"\boxed{1+2x}", reading)
    expected = {RunEnd.PASSED: True, RunEnd.MACHINE: None}
    assert given.correct is expected.get(end, False)
    assert (given.verdict is Verdict.NOT_GRADABLE) == (end is RunEnd.MACHINE)
