"""`c4 models eval`: one model for all tasks, and honest numbers."""

import json

import pytest

from c4.record import plan as planning
from tests.commands import done


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
    options = ("--n", 2, "--out", tmp_path, "--json")
    evaluations = json.loads(done("models", "eval", random_llada, *tasks, *options).stdout)
    assert [(e["task"], e["n"], e["graded"]) for e in evaluations] == [
        ("mmlu", 2, 2),
        ("svamp", 2, 2),
    ]
    assert len(loads) == 1
