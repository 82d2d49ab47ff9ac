"""The generators of embedded problems, one contract for all of them."""

import hashlib
import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from c4.tasks import TASKS, Family, grade, load_samples
from c4.tasks.problems import EVALUATION, held_out, problem
from c4.tasks.sandbox.run import can_isolate

SOME = 200


def prompts(task, start, count):
    return [TASKS[task].read(problem(task, i).row).prompt for i in range(start, start + count)]


def answer_text(task, made):
    """What a model that solves the problem would write."""
    if TASKS[task].family is Family.LETTERS:
        return f"{TASKS[task].read(made.row).target}. {made.solution}"
    return made.solution


@pytest.mark.parametrize("task", TASKS)
def test_evaluation_is_new_and_training_never_sees_it(task):
    for i in range(SOME):
        assert any(map(held_out, problem(task, i).combinations))
        assert not any(map(held_out, problem(task, EVALUATION + i).combinations))
    seen = set(prompts(task, EVALUATION, 20 * SOME))
    assert seen.isdisjoint(prompts(task, 0, SOME))


@pytest.mark.parametrize("task", TASKS)
def test_there_are_many_different_problems(task):
    assert len(set(prompts(task, 0, SOME))) > 0.7 * SOME


@pytest.mark.parametrize(
    "task", [name for name, task in TASKS.items() if task.family is not Family.CODE]
)
def test_the_worked_solution_is_graded_correct(task):
    for i in range(SOME):
        made = problem(task, i)
        example = TASKS[task].read(made.row)
        assert grade(TASKS[task], example, answer_text(task, made)).correct, made


@pytest.mark.skipif(not can_isolate(), reason="cannot isolate model-written code")
@pytest.mark.parametrize("task", ["humaneval", "mbpp"])
def test_code_solutions_pass_their_tests_and_empty_ones_do_not(task):
    for i in range(0, 4 * SOME, 2 * SOME // 5):
        made = problem(task, i)
        example = TASKS[task].read(made.row)
        head = made.solution.splitlines()[0]
        assert grade(TASKS[task], example, made.solution).correct, made
        assert not grade(TASKS[task], example, f"{head}\n    return None").correct, made


@pytest.mark.parametrize(
    "task", [name for name, task in TASKS.items() if task.family is Family.LETTERS]
)
def test_no_letter_is_favoured(task):
    examples = [TASKS[task].read(problem(task, i).row) for i in range(SOME)]
    by_choices = Counter(example.prompt.count("\n") - 1 for example in examples)
    expected_first = sum(count / choices for choices, count in by_choices.items())
    first = sum(example.target == "A" for example in examples)
    assert abs(first - expected_first) < 5 * (SOME * 0.25) ** 0.5 / 2


@pytest.mark.parametrize("task", TASKS)
def test_rows_have_the_hub_s_fields(request, task):
    shipped = Path(__file__).parents[1] / "data" / "rows" / f"{task}.jsonl"
    if not shipped.exists():
        shipped = request.getfixturevalue("shared_data") / f"{task}.jsonl"
    real = json.loads(shipped.read_text(encoding="utf-8").split("\n")[0])
    assert problem(task, 0).row.keys() == real.keys()


def digest():
    made = [problem(task, i) for task in TASKS for i in (0, 17, EVALUATION + 3)]
    return hashlib.sha256(repr(made).encode()).hexdigest()


def test_problems_are_the_same_in_every_process():
    code = f"import sys; sys.path.insert(0, {os.path.dirname(__file__)!r}); import test_problems"
    printed = subprocess.run(
        [sys.executable, "-c", f"{code}; print(test_problems.digest())"],
        env={**os.environ, "PYTHONHASHSEED": "12345"},
        check=True,
        capture_output=True,
        text=True,
    )
    assert printed.stdout.strip() == digest()


def test_the_embedded_split_is_the_evaluation_problems():
    loaded = load_samples(TASKS["gsm8k"], "embedded", n=10, skip=40)
    assert loaded.origin.startswith("embedded:")
    assert (loaded.usable, loaded.left_out) == (EVALUATION, 0)
    for sample in loaded.samples:
        assert sample.example == TASKS["gsm8k"].read(problem("gsm8k", sample.source_row).row)
