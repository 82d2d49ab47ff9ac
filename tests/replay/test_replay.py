"""Replay over recordings on disk, and the commands on top of it."""

import json
import re
import shutil
import subprocess
import sys
from dataclasses import fields
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest

from c4.analysis.phases import phase_table
from c4.cli.replay import never_settle_note
from c4.errors import SandboxError
from c4.gates.candidates import filled_predictions
from c4.gates.cvee import CVEE
from c4.gates.oracle import Oracle
from c4.gates.progress import FixedProgress
from c4.gates.registry import GATES
from c4.gates.signals import Signals
from c4.record.plan import RunConfig
from c4.replay.decisions import DECISIONS, replay, summarise_decisions
from c4.replay.selection import GateChoice
from c4.store.manifest import run_folder
from c4.store.runs import open_run
from c4.tasks import TASKS, grade
from c4.tasks.examples import examples_set_aside
from tests.commands import c4
from tests.recordings import record, run


@pytest.fixture(scope="module")
def runs(random_llada, tmp_path_factory):
    """Recordings of three families by a random model."""
    root = tmp_path_factory.mktemp("runs")
    for task, n in (("gsm8k", 6), ("mmlu", 6), ("humaneval", 2)):
        config = RunConfig(
            task=task,
            model=str(random_llada),
            source="embedded",
            n=n,
            skip=37 if task != "humaneval" else 0,
            out=root,
            unsafe_code=True,
        )
        record(config)
    return root


def run_of(runs, task):
    return open_run(run_folder(runs, "random-llada", task, "baseline"))


def test_decisions_are_those_of_the_filled_buffer(runs):
    run = run_of(runs, "gsm8k")
    frame = pl.concat(replay(run, {"half": FixedProgress(0.5), "never": CVEE(tau=1.0, p_min=99)}))
    assert frame.schema == DECISIONS
    assert frame.height == 12
    for trajectory in run:
        half, never = frame.filter(pl.col("trajectory") == trajectory.row.trajectory).to_dicts()
        filled = filled_predictions(trajectory.cells.token, trajectory.cells.masked)
        assert (half["fired"], half["steps"]) == (True, 12)
        assert half["text"] == run.text(filled[11].tolist())
        given = grade(TASKS["gsm8k"], trajectory.row.example, half["text"])
        assert (half["answer"], half["correct"]) == (given.answer, given.correct)
        assert (never["fired"], never["steps"]) == (False, 24)
        assert never["text"] == trajectory.row.text
        assert never["correct"] == trajectory.row.correct
        assert never["identical"]


def test_the_oracle_is_never_premature_and_never_changes_the_candidate(runs):
    for task in ("gsm8k", "mmlu"):
        frame = pl.concat(replay(run_of(runs, task), {"oracle": Oracle()}))
        assert not frame["premature"].any()
        fired = frame.filter("fired")
        assert (fired["steps"] == fired["stabilization"]).all()


def test_code_is_replayed_and_graded_too(runs):
    frame = pl.concat(
        replay(run_of(runs, "humaneval"), {"half": FixedProgress(0.5)}, unsafe_code=True)
    )
    assert frame["steps"].to_list() == [4, 4]
    assert frame["correct"].to_list() == [False, False]


def test_the_summary_puts_the_full_decode_beside_the_gate(runs):
    frame = pl.concat(replay(run_of(runs, "mmlu"), {"half": FixedProgress(0.5)}))
    (row,) = summarise_decisions(frame).to_dicts()
    assert (row["n"], row["steps"], row["full_steps"], row["budget"]) == (6, 8, 16, 16)
    assert row["saving"] == row["saving_recorded"] == 0.5
    assert row["accuracy"] == frame["correct"].mean()
    assert row["full_accuracy"] == frame["full_correct"].mean()


@pytest.fixture(scope="module")
def sampled(random_llada, tmp_path_factory):
    """A sampler's run with every step kept: its trajectories have unequal numbers of them."""
    config = RunConfig(
        task="gsm8k",
        model=str(random_llada),
        source="embedded",
        n=4,
        skip=0,
        out=tmp_path_factory.mktemp("sampled"),
    )
    return run(config, "fast-dllm", "tau=0.12", cells=True)[0]


def test_a_gate_with_a_setting_of_the_user_s_is_named_with_it(runs, tmp_path):
    out = tmp_path / "decisions.parquet"
    args = ("replay", "--runs", runs, "--task", "mmlu", "--gate", "cvee", "--gate", "prophet")
    said = json.loads(c4(*args, "--set", "tau=0.8", "--out", out, "--json").stdout)
    assert [row["gate"] for row in said] == ["cvee,tau=0.8", "prophet"]
    assert set(pl.read_parquet(out)["gate"]) == {"cvee,tau=0.8", "prophet"}


def test_premature_exits_are_a_share_of_the_answers_that_settle():
    rows = {"premature": [True, False, None], "stabilization": [9, 1, None]}
    decisions = pl.DataFrame(
        rows | {name: ["x"] * 3 for name in ("model", "task", "method", "gate")}
    )
    numbers = dict.fromkeys(("correct", "full_correct", "fired", "identical"), True)
    numbers |= dict.fromkeys(("steps", "full_steps", "budget"), 4) | {"split": None}
    decisions = decisions.with_columns(**{k: pl.lit(v) for k, v in numbers.items()})
    (half,) = summarise_decisions(decisions).to_dicts()
    assert (half["premature"], half["never_settle"]) == (0.5, 1)
    assert "1 of 3 never settle (x on x)" in never_settle_note(summarise_decisions(decisions))
    (none,) = summarise_decisions(decisions[2:]).to_dicts()
    assert (none["premature"], none["never_settle"]) == (None, 1)
    assert "no answer settles (x on x)" in never_settle_note(summarise_decisions(decisions[2:]))


def test_a_recorded_sampler_s_own_steps_stand_beside_the_gate_s(sampled):
    args = ("replay", "--runs", sampled, "--gate", "progress", "--set", "fraction=0.25")
    (row,) = json.loads(c4(*args, "--json").stdout)
    spent = [row.steps for row in open_run(sampled).rows()]
    assert (row["steps"], row["budget"], row["saving"]) == (6, 24, 0.75)
    assert row["full_steps"] == np.mean(spent) < 24
    assert row["saving_recorded"] == pytest.approx(np.mean([1 - 6 / steps for steps in spent]))
    assert row["method"] == "fast-dllm,tau=0.12"
    table = c4(*args).stdout
    assert f"6.0 ({round(np.mean(spent), 1):g})" in table
    assert "recorded" in table


def test_a_sampler_is_replayed_and_calibrated_on_only_where_its_run_is_named(
    sampled, random_llada, tmp_path
):
    root = sampled.parents[2]
    config = RunConfig(
        task="gsm8k", model=str(random_llada), source="embedded", n=4, skip=0, out=root
    )
    folders = {"fast-dllm,tau=0.12": sampled}
    for method, cells in (("cctc", True), ("klass", False)):
        folders[method], _ = run(config, method, cells=cells)
    out = tmp_path / "cvee.json"
    for method in ("cctc", "fast-dllm,tau=0.12"):
        named = ("--runs", folders[method])
        rows = json.loads(c4("replay", *named, "--gate", "cvee", "--json").stdout)
        assert [(row["method"], row["n"]) for row in rows] == [(method, 4)]
        result = c4("calibrate", *named, "--out", out, "--json")
        assert json.loads(result.stdout)["pool"] == {f"gsm8k ({method})": 4}
    for nothing in (root, folders["klass"]):
        refused = c4("replay", "--runs", nothing, "--gate", "cvee")
        assert refused.exit_code == 2
        assert "c4 run --cells" in " ".join(refused.stderr.split())


def test_replay_prints_one_row_per_task_and_gate(runs, tmp_path):
    out = tmp_path / "decisions.parquet"
    result = c4("replay", "--runs", runs, "--task", "mmlu", "--task", "gsm8k", "--gate", "cvee",
                "--gate", "oracle", "--out", out, "--json")  # fmt: skip
    rows = json.loads(result.stdout)
    assert [(row["task"], row["gate"]) for row in rows] == [
        ("gsm8k", "cvee"), ("gsm8k", "oracle"), ("mmlu", "cvee"), ("mmlu", "oracle"),
    ]  # fmt: skip
    assert pl.read_parquet(out).height == 24
    table = c4("replay", "--runs", runs, "--task", "mmlu", "--gate", "prophet").stdout
    assert "premature" in table
    assert "prophet" in table
    assert "of recorded" not in table  # a full decode takes the budget
    assert "split" not in table  # nothing was chosen


def test_a_user_s_gate_is_found_by_module_and_name(runs, monkeypatch, tmp_path):
    (tmp_path / "step_gates.py").write_text(
        "from dataclasses import dataclass\n"
        "@dataclass(frozen=True)\n"
        "class Calm:\n"
        "    steps: float = 3\n"
        "    def fires(self, s):\n"
        "        return s.step >= self.steps\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    result = c4("replay", "--runs", runs, "--task", "mmlu", "--gate", "step_gates:Calm", "--set",
                "steps=5", "--json")  # fmt: skip
    assert json.loads(result.stdout)[0]["steps"] == 5


class AfterFive:
    """All that a gate must have."""

    def fires(self, s):
        return s.step >= 5


def test_a_user_s_gate_is_replayed_from_python_as_it_is(runs):
    run = run_of(runs, "mmlu")
    assert set(pl.concat(replay(run, {"own": AfterFive()}))["steps"]) == {5}
    assert set(phase_table(run, {"own": AfterFive()})["exit"]) == {5 / run.shape.budget}


def test_a_gate_may_look_at_every_cell(runs, monkeypatch, tmp_path):
    (tmp_path / "cell_gates.py").write_text(
        "class Still:\n"
        "    wants_cells = True\n"
        "    def fires(self, s, cells):\n"
        "        assert cells.entropy.shape == (len(s.step), s.length[0])\n"
        "        return cells.masked.mean(axis=1) <= 0.5\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    result = c4("replay", "--runs", runs, "--task", "mmlu", "--gate", "cell_gates:Still", "--json")
    assert json.loads(result.stdout)[0]["steps"] == 9  # half of 16 are committed after 8 steps


DOCS = Path(__file__).parents[2] / "docs" / "gates.md"


@pytest.mark.parametrize("name", ["Calm", "Still"])
def test_the_gates_in_the_documents_work_as_they_stand(
    runs, random_llada, monkeypatch, tmp_path, name
):
    blocks = re.findall(r"```python\n(.*?)```", DOCS.read_text(encoding="utf-8"), re.DOTALL)
    module = f"docs_{name.lower()}"
    (tmp_path / f"{module}.py").write_text("\n".join(blocks), encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    gate = f"{module}:{name}"
    assert c4("replay", "--runs", runs, "--task", "mmlu", "--gate", gate).exit_code == 0
    verified = c4("verify", "--task", "mmlu", "--model", random_llada, "--source", "embedded",
                  "--n", 2, "--gate", gate, "--json")  # fmt: skip
    assert all(check["agrees"] for check in json.loads(verified.stdout))


def test_every_gate_and_signal_is_documented():
    text = DOCS.read_text(encoding="utf-8")
    for name in GATES:
        assert f"`{name}`" in text
    for spec in fields(Signals):
        assert f"`{spec.name}`" in text or spec.name.startswith("tail_")


def test_a_signal_that_is_not_there_is_named(runs, monkeypatch, tmp_path):
    (tmp_path / "bad_gates.py").write_text(
        "class Bad:\n    def fires(self, s): return s.surprise\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    result = c4("replay", "--runs", runs, "--task", "mmlu", "--gate", "bad_gates:Bad")
    assert "no signal 'surprise'; there are: step, budget, candidate" in " ".join(
        result.stderr.split()
    )


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["--gate", "cctc"], "cctc changes which steps exist"),
        (["--gate", "cvee", "--set", "tau=7"], "CVEE takes tau from 0 to 1"),
        (["--gate", "cvee", "--set", "patience=7"], "no chosen gate takes that"),
        (["--gate", "cvee", "--set", "sched.high=7"], "no chosen gate takes that"),
        (["--gate", "cvee", "--set", "tau"], "write NAME=VALUE"),
        (["--task", "math"], "no recording of math below"),
        (["--task", "mmul"], "no task named 'mmul'; did you mean mmlu"),
        (["--config", "nowhere.json"], "no file nowhere.json"),
        (["--config", __file__], "not a file that `c4 calibrate` wrote"),
    ],
)
def test_bad_replays_are_refused_in_words(runs, args, message):
    result = c4("replay", "--runs", runs, *args)
    assert result.exit_code == 2
    assert result.stdout == ""
    assert message in " ".join(result.stderr.split())


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (["tau"], "write NAME=VALUE"),
        (["gamma=1"], "it is given twice, first as gamma=1"),
        (["sched.high=7"], "no chosen gate takes that (cvee: tau, gamma, p_min)"),
        (["tau=0.9:0.5:0.1"], "a range must increase"),
        (["tau=many"], "CVEE takes tau from 0 to 1, not many"),
    ],
)
def test_values_to_calibrate_are_written_as_settings_are(runs, settings, message):
    given = [word for text in settings for word in ("--set", text)]
    result = c4("calibrate", "--runs", runs, "--gamma", 2, *given)
    assert result.exit_code == 2
    assert message in " ".join(result.stderr.split())


@pytest.mark.parametrize("command", ["calibrate", "verify --task mmlu"])
def test_a_sampler_is_refused_with_what_to_type(command):
    result = c4(*command.split(), "--gate", "wino")
    assert result.exit_code == 2
    said = " ".join(result.stderr.split())
    assert "wino changes which steps exist" in said
    assert "c4 run --method wino --task" in said


def test_calibration_chooses_on_the_pool_and_freezes_what_replay_accepts(runs, tmp_path):
    out = tmp_path / "cvee.json"
    result = c4("calibrate", "--runs", runs, "--gamma", "2", "--out", out, "--json")
    summary = json.loads(result.stdout)
    assert summary["pool"] == {"gsm8k": 3, "mmlu": 3}  # 37, 38, 39; held out from 40 on
    assert [row["n"] for row in summary["held_out"]] == [3, 3]
    frozen = json.loads(out.read_text())
    assert frozen["parameters"] == summary["parameters"]
    assert {t for c in frozen["pool"] for t in c["trajectories"]} == {37, 38, 39}
    assert len(frozen["table"]) == len(frozen["grid"]["tau"]) * len(frozen["grid"]["p_min"])
    kept = [row for row in frozen["table"] if row["keeps"]]
    assert min(row["steps"] for row in kept) == next(
        row["steps"]
        for row in kept
        if all(row[name] == value for name, value in frozen["parameters"].items())
    )
    replayed = c4("replay", "--runs", runs, "--config", out, "--task", "mmlu", "--json")
    assert json.loads(replayed.stdout)[0]["gate"] == "cvee (cvee.json)"


def test_naming_an_own_gate_beside_its_calibration_asks_for_nothing_else():
    own = "c4.gates.cvee:CVEE"  # as a user's own would be named
    frozen = SimpleNamespace(gate=own, label="frozen", make=lambda family, names: CVEE(tau=0.9))
    shown = {
        "as it is": GateChoice([own, "cvee"], (), [frozen]),
        "with a setting": GateChoice([own], ["tau=0.8"], [frozen]),
        "in tables": GateChoice([own], (), [frozen], beside=True),
    }
    assert {what: choice.labels for what, choice in shown.items()} == {
        "as it is": ["cvee", "frozen"],
        "with a setting": [f"{own},tau=0.8", "frozen"],
        "in tables": [own, "frozen"],
    }


def test_a_frozen_setting_is_shown_apart_on_what_it_was_chosen_on(runs, tmp_path):
    frozen, out = tmp_path / "cvee.json", tmp_path / "decisions.parquet"
    c4("calibrate", "--runs", runs, "--gamma", "2", "--task", "mmlu", "--out", frozen)
    args = ["replay", "--runs", runs, "--task", "mmlu", "--task", "gsm8k", "--config", frozen]
    rows = json.loads(c4(*args, "--gate", "cvee", "--out", out, "--json").stdout)
    assert [(row["task"], row["gate"], row["split"], row["n"]) for row in rows] == [
        ("gsm8k", "cvee", None, 6),
        ("gsm8k", "cvee (cvee.json)", None, 6),  # another recording: not in the pool
        ("mmlu", "cvee", None, 6),
        ("mmlu", "cvee (cvee.json)", "pool", 3),
        ("mmlu", "cvee (cvee.json)", "held out", 3),
    ]
    decisions = pl.read_parquet(out)
    assert decisions.schema == DECISIONS
    chosen = decisions.filter(pl.col("split").is_not_null())
    assert dict(chosen.select("trajectory", "split").iter_rows()) == dict.fromkeys(
        (37, 38, 39), "pool"
    ) | dict.fromkeys((40, 41, 42), "held out")
    for row in rows[3:]:
        part = chosen.filter(split=row["split"])
        assert (row["accuracy"], row["steps"]) == (part["correct"].mean(), part["steps"].mean())
    table = c4(*args).stdout
    assert re.search(r"cvee \(cvee.json\) +pool +3 ", table)
    assert re.search(r"cvee \(cvee.json\) +held out +3 ", table)
    assert "pool: trajectories used to choose this setting, so optimistic" in table


def test_calibration_says_which_examples_stop_being_evaluation(runs, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def said(*args):
        result = c4("calibrate", "--runs", runs, *args)
        assert result.exit_code == 0, result.output
        return result.stdout

    code = said("--task", "humaneval", "--pool", 2, "--set", "p_min=3", "--unsafe-code")
    assert "humaneval: chosen on the 2 trajectories that --pool names (0 to 1), none held" in code
    large = said("--task", "gsm8k", "--task", "mmlu", "--pool", 42)
    assert "gsm8k: chosen on the 5 trajectories that --pool names (37 to 41), 1 held out" in large
    count = "count what it was chosen on as pool for every method: 2 of gsm8k, 2 of mmlu"
    assert f"frozen in calibration.json; tables and figures {count}\n" in large
    elsewhere = said("--task", "gsm8k", "--task", "mmlu", "--pool", 42, "--out", runs.parent / "x")
    assert f"tables and figures given --calibration {runs.parent / 'x'} {count}\n" in elsewhere
    aside = said("--task", "gsm8k")
    assert aside.startswith(
        "gsm8k: chosen on 3 of the 40 examples set aside for calibration (37 to 39), 3 held out\n"
    )
    assert aside.endswith("frozen in calibration.json\n")
    assert examples_set_aside(TASKS["gsm8k"], "file") == 0


def test_two_recordings_of_a_task_are_not_calibrated_together(runs, tmp_path):
    for copy in ("one", "two"):
        shutil.copytree(runs, tmp_path / "runs" / copy)
    out = tmp_path / "x.json"
    result = c4("calibrate", "--runs", tmp_path / "runs", "--gamma", "2", "--out", out)
    assert result.exit_code == 2
    assert "are both of gsm8k; calibrate on one of them" in " ".join(result.stderr.split())
    assert not out.exists()


def test_too_few_trajectories_are_not_certified_and_said_so(runs, tmp_path):
    result = c4("calibrate", "--runs", runs, "--gamma", "2", "--risk", "0.05", "--out",
                tmp_path / "x.json")  # fmt: skip
    assert "no setting can be certified with 6 trajectories" in " ".join(result.stdout.split())
    refused = c4("replay", "--runs", runs, "--config", tmp_path / "x.json")
    assert "that calibration chose no setting" in " ".join(refused.stderr.split())


@pytest.mark.parametrize("task", ["gsm8k", "mmlu", "humaneval"])
def test_verify_finds_live_decoding_and_replay_equal(random_llada, task):
    result = c4("verify", "--task", task, "--model", random_llada, "--source", "embedded", "--n", 2,
                "--unsafe-code", "--json")  # fmt: skip
    checks = json.loads(result.stdout)
    assert result.exit_code == 0
    assert len(checks) == 2 * 7
    assert all(check["agrees"] for check in checks)


def test_what_cannot_be_verified_is_refused_before_anything_is_decoded(monkeypatch):
    def refuse():
        raise SandboxError("no isolation here; accept the risk with --unsafe-code")

    monkeypatch.setattr("c4.tasks.grading.require_isolation", refuse)
    monkeypatch.setattr("c4.record.plan.plan_recording", None)  # would fail if it came to that
    for args, message in (
        (["--task", "humaneval"], "accept the risk with --unsafe-code"),
        (["--task", "mmlu", "--gate", "cvee", "--gate", "oracle"], "Oracle needs to know"),
    ):
        result = c4("verify", *args)
        assert result.exit_code == 2
        assert result.stdout == ""
        assert message in " ".join(result.stderr.split())


def test_a_gate_of_one_s_own_is_found_in_the_folder_where_c4_is_called(tmp_path):
    (tmp_path / "gates_found_here.py").write_text(
        "class Never:\n    def fires(self, s):\n        return s.step < 0\n"
    )
    code = (
        "from c4.gates import make_gate; print(type(make_gate('gates_found_here:Never')).__name__)"
    )
    # As a console script does, and unlike python -c, without the folder on the path.
    command = [sys.executable, "-c", f"import sys; sys.path[:1] = []; {code}"]
    run = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert run.stdout == "Never\n", run.stderr
