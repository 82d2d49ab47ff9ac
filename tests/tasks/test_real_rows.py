"""Loaders, extractors and graders on real benchmark rows.

A sample of the permissively licensed sets is shipped; where all of them lie beside this checkout,
they are used as well.
"""

import json
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path

import pytest

from c4.tasks import TASKS, Family, grade, load_samples
from c4.tasks.sandbox.run import can_isolate

SCALAR = [name for name, task in TASKS.items() if task.family is not Family.CODE]
CODE = [name for name, task in TASKS.items() if task.family is Family.CODE]
SHIPPED = Path(__file__).parents[1] / "data" / "rows"
NOT_SHIPPED = {"arc_c", "asdiv"}  # their licences do not allow it
LEFT_OUT = {"arc_c": 18, "asdiv": 143}
"""Rows that section 7 of the specification leaves out, counted by hand from the files."""


@pytest.fixture(params=["shipped", "beside this checkout"])
def rows_folder(request):
    """A folder of rows."""
    if request.param == "shipped":
        return SHIPPED
    return request.getfixturevalue("shared_data")


def read_rows(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def examples(folder, name):
    path = folder / f"{name}.jsonl"
    if folder == SHIPPED and name in NOT_SHIPPED:
        pytest.skip("the licence of this set does not allow shipping its rows")
    rows = len(read_rows(path))
    loaded = load_samples(TASKS[name], str(path), skip=0, n=rows - LEFT_OUT.get(name, 0))
    assert loaded.left_out == LEFT_OUT.get(name, 0)
    return [sample.example for sample in loaded.samples]


def gold_text(name, target):
    """How a model that knows the answer would put it."""
    if TASKS[name].family is Family.LETTERS:
        return f"{target}. As the text says."
    if name == "math":
        return rf"We add 1 and 2. So the answer is $\boxed{{{target}}}$."
    return f"We add 1 and 2. So the answer is ${target}."


@pytest.mark.parametrize("name", SCALAR)
def test_every_gold_answer_is_graded_correct(rows_folder, name):
    task = TASKS[name]
    for example in examples(rows_folder, name):
        given = grade(task, example, gold_text(name, example.target))
        assert given.correct, (example.target, given)


@pytest.mark.parametrize("name", SCALAR)
def test_the_next_example_s_answer_is_graded_wrong_unless_it_is_the_same(rows_folder, name):
    task = TASKS[name]
    all_examples = examples(rows_folder, name)
    for example, other in pairwise(all_examples):
        given = grade(task, example, gold_text(name, other.target))
        same = task.gold(other) == task.gold(example)
        assert given.correct == same
    assert not grade(task, all_examples[0], "").correct


@pytest.mark.parametrize(("name", "field"), [("gsm8k", "answer"), ("math", "solution")])
def test_worked_solutions_are_graded_correct(rows_folder, name, field):
    for row in read_rows(rows_folder / f"{name}.jsonl"):
        assert grade(TASKS[name], TASKS[name].read(row), row[field]).correct, row["answer"]


def test_math_answers_may_be_spaced_as_one_likes(rows_folder):
    for row in read_rows(rows_folder / "math.jsonl"):
        spaced = row["answer"].replace("\\\\", " \\\\ ").replace("=", " = ").replace(",", ",\\!")
        example = TASKS["math"].read(row)
        assert grade(TASKS["math"], example, f"\\boxed{{ {spaced} }}").correct, row["answer"]


def test_truthfulqa_s_true_choice_does_not_stay_first(rows_folder):
    targets = [example.target for example in examples(rows_folder, "truthfulqa")]
    assert targets.count("A") < len(targets) / 3


needs_isolation = pytest.mark.skipif(
    not can_isolate(), reason="this machine cannot isolate model-written code"
)


@needs_isolation
@pytest.mark.parametrize("name", CODE)
@pytest.mark.parametrize(
    "rows_folder",
    ["shipped", pytest.param("beside this checkout", marks=pytest.mark.slow)],
    indirect=True,
)
def test_every_reference_solution_passes_its_tests(rows_folder, name):
    task = TASKS[name]
    with ThreadPoolExecutor(2) as pool:
        todo = examples(rows_folder, name)
        graded = list(pool.map(lambda e: grade(task, e, e.target), todo))
    assert [e.prompt for e, g in zip(todo, graded, strict=True) if not g.correct] == []


@needs_isolation
@pytest.mark.parametrize("name", CODE)
def test_a_function_that_returns_nothing_fails(rows_folder, name):
    task = TASKS[name]
    for example in examples(rows_folder, name)[:12]:
        head = task.extract(example.target).value.splitlines()
        stub = next(line for line in head if line.startswith("def ")) + "\n    return None\n"
        given = grade(task, example, stub)
        assert given.answer is not None
        assert not given.correct, example.prompt
