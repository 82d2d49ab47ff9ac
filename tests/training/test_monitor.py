"""The monitor decodes as c4 does, and scores what was decoded."""

import numpy as np
import pytest
from fresh import FOLDER, shipped_codec

from c4.decode.loop import decode
from c4.tasks import Grade, Verdict
from training import monitor
from training.lessons import shape_of, validation_lessons
from training.monitor import decode_lessons, evaluate, open_denoiser


@pytest.fixture(scope="module")
def denoiser():
    return open_denoiser(FOLDER, shipped_codec())


def test_it_decodes_with_the_loop_that_c4_decodes_with(denoiser):
    lessons = validation_lessons("mmlu", 2)
    ids = decode_lessons(denoiser, shipped_codec(), lessons)
    for row, lesson in zip(ids, lessons, strict=True):
        prompt = np.array(shipped_codec().prompt(lesson.example.prompt))
        assert row.tolist() == decode(denoiser, prompt, shape_of("mmlu")).ids.tolist()


def test_the_shipped_model_answers_and_its_answers_are_located(denoiser):
    score = evaluate(denoiser, shipped_codec(), "winogrande", n=6)
    assert (score.n, len(score.texts)) == (6, 6)
    assert score.accuracy == 1 - len(score.wrong) / 6
    assert score.accuracy >= 0.6
    assert score.located == 1
    assert str(score).startswith("winogrande")


def test_an_answer_that_nobody_could_grade_is_neither_right_nor_wrong(denoiser, monkeypatch):
    verdicts = iter([Verdict.RIGHT, Verdict.NOT_GRADABLE, Verdict.WRONG, Verdict.NO_ANSWER])
    monkeypatch.setattr(monitor, "grade", lambda *_: Grade(None, next(verdicts)))
    score = evaluate(denoiser, shipped_codec(), "piqa", n=4)
    assert score.n == 3
    assert score.accuracy == pytest.approx(1 / 3)
    assert score.wrong == (2, 3)
