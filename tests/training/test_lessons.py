"""Lessons: what the model is taught to write fits its shapes and lies where the gates look."""

import pytest
from fresh import FOLDER, shipped_codec

from c4.models import find_checkpoint, load_model
from c4.tasks import TASKS, Ending, Family
from c4.tasks.problems import EVALUATION
from training.lessons import lesson, shape_of, validation_lessons
from training.settings import MIXTURE, PHASES, VALIDATION_FIRST


def test_every_task_is_taught():
    assert MIXTURE.keys() == TASKS.keys()


@pytest.mark.parametrize("name", TASKS)
def test_answers_fit_the_shapes_and_lie_where_the_gates_look(name):
    task, shape, vocabulary = TASKS[name], shape_of(name), shipped_codec().vocabulary
    tail = int(shape.length * 0.7)
    inside = 0
    for i in range(100):
        ids = shipped_codec().response(lesson(name, i).response)
        assert len(ids) < shape.length  # with room for an end token
        traced = vocabulary.trace(ids, Ending.CUT)
        answer = task.extract(traced.text)
        first, _ = traced.token_span(answer.start, answer.end)
        inside += first >= tail if task.family is Family.LONG_REASONING else first < 5
    assert inside >= 97


@pytest.mark.parametrize("name", TASKS)
def test_prompts_are_what_the_chat_template_makes_of_them(name):
    loaded = load_model(find_checkpoint(str(FOLDER)))
    prompt = lesson(name, 0).example.prompt
    assert shipped_codec().prompt(prompt) == loaded.encode_prompt(prompt)


def test_training_never_reaches_evaluation_or_validation_problems():
    firsts = sorted(phase.first_problem for phase in PHASES)
    assert firsts[0] >= EVALUATION
    assert firsts[-1] < VALIDATION_FIRST
    assert len(set(firsts)) == len(PHASES)


def test_validation_lessons_come_in_order_from_behind_all_training():
    four = validation_lessons("svamp", 4)
    assert four[1:] == validation_lessons("svamp", 3, skip=1)
    assert four[0] == lesson("svamp", VALIDATION_FIRST)
