"""`c4 models eval`: one model for all tasks, and honest numbers."""

import json

import pytest
from typer.testing import CliRunner

from c4.cli.app import app
from c4.record import plan as planning


@pytest.fixture
def loads(monkeypatch):
    """How often a model is loaded."""
    seen = []
    load = planning.load_planned
    counted = lambda plan: seen.append(plan.task.name) or load(plan)  # noqa: E731
    monkeypatch.setattr(planning, "load_planned", counted)
    monkeypatch.setattr("c4.record.recorder.load_planned", counted)
    return seen


def test_a_model_is_loaded_once_for_all_tasks(random_llada, tmp_path, loads):
    tasks = [word for task in ("mmlu", "svamp", "mmlu") for word in ("--task", task)]
    args = ["models", "eval", str(random_llada), *tasks, "--n", "2", "--out", str(tmp_path)]
    result = CliRunner().invoke(app, [*args, "--json"])
    assert result.exit_code == 0, result.output
    evaluations = json.loads(result.stdout)
    assert [(e["task"], e["n"], e["graded"]) for e in evaluations] == [
        ("mmlu", 2, 2),
        ("svamp", 2, 2),
    ]
    assert len(loads) == 1
