"""Decodes that share their passes: order, errors and interruption, and bits that stay the same."""

import threading
from dataclasses import fields

import numpy as np
import pytest
import torch

from c4.decode.batch import Batch
from c4.decode.loop import decode
from c4.decode.rules.cctc import CCTC
from c4.decode.rules.klass import KLASS
from c4.decode.rules.schedule import Schedule
from c4.decode.rules.slowfast import SlowFast
from c4.decode.rules.threshold import Threshold
from c4.decode.rules.wino import WINO
from c4.errors import ModelError
from c4.gates.steps import CellRecorder
from c4.models import find_checkpoint, load_model, read_logits
from c4.models.batch import BatchDenoiser
from c4.tasks import Shape

SHAPE = Shape(length=16, budget=16, block_length=8)


class Echo:
    """A batch of two that answers every sequence with its own tokens, and counts passes."""

    mask_id, shift = 99, False
    size = 2

    def __init__(self):
        self.denoiser = self
        self.passes = []

    def logits(self, requests):
        self.passes.append([request and int(request.ids[0]) for request in requests])
        return [request and torch.eye(100)[request.ids[request.start :]] for request in requests]

    def interpret(self, logits):
        return read_logits(logits, self.mask_id)


def asks(number, times, error=None):
    """A job that asks some times, and then fails or gives its number."""

    def job(predictor):
        for _ in range(times):
            reading = predictor.read(np.array([number, 5, 6]), 1)
            assert reading.token.tolist() == [5, 6]
        if error is not None:
            raise error
        return number

    return job


def test_a_place_that_falls_free_is_taken_by_the_next():
    model = Echo()
    jobs = iter([asks(1, 3), asks(2, 1), asks(3, 1), asks(4, 2)])
    assert list(Batch(model, jobs)) == [2, 3, 1, 4]
    assert model.passes == [[1, 2], [1, 3], [1, 4], [None, 4]]


def test_jobs_are_taken_only_when_there_is_a_place():
    taken = []

    def jobs():
        for number in range(5):
            taken.append(number)
            yield asks(number, 1)

    results = iter(Batch(Echo(), jobs()))
    assert next(results) == 0
    assert taken == [0, 1]
    assert list(results) == [1, 2, 3, 4]


def test_a_job_that_asks_nothing_takes_no_pass():
    model = Echo()
    assert list(Batch(model, iter([asks(1, 0), asks(2, 0)]))) == [1, 2]
    assert model.passes == []


def test_after_an_error_the_others_finish_and_no_other_begins():
    results = iter(Batch(Echo(), iter([asks(1, 3), asks(2, 1, ModelError("no")), asks(3, 1)])))
    assert next(results) == 1
    with pytest.raises(ModelError, match="no"):
        next(results)
    assert_no_seats_left()


def assert_no_seats_left():
    assert [t for t in threading.enumerate() if "_run" in t.name] == []


def test_what_fails_in_a_pass_ends_all_and_leaves_no_thread():
    class Broken(Echo):
        def logits(self, requests):
            if self.passes:
                raise KeyboardInterrupt
            return super().logits(requests)

    with pytest.raises(KeyboardInterrupt):
        list(Batch(Broken(), iter([asks(1, 3), asks(2, 3)])))
    assert_no_seats_left()


def test_a_batch_that_nobody_reads_any_more_leaves_no_thread():
    results = iter(Batch(Echo(), iter([asks(1, 1), asks(2, 50), asks(3, 50)])))
    assert next(results) == 1
    assert len([t for t in threading.enumerate() if "_run" in t.name]) == 1
    results.close()
    assert_no_seats_left()


def test_a_rule_that_swallows_errors_cannot_keep_a_batch_alive():
    def stubborn(predictor):
        while True:
            try:
                predictor.read(np.array([1, 5]), 1)
            except Exception:
                continue

    results = iter(Batch(Echo(), iter([asks(1, 1), stubborn])))
    assert next(results) == 1
    results.close()
    assert_no_seats_left()


def test_one_thread_runs_at_a_time():
    running, most = [], []

    def job(predictor):
        for _ in range(20):
            running.append(1)
            most.append(len(running))
            sum(range(10_000))  # long enough for another thread to be switched to
            running.pop()
            predictor.read(np.array([1, 5]), 1)

    list(Batch(Echo(), iter([job, job])))
    assert set(most) == {1}


@pytest.fixture(scope="module")
def denoiser(random_llada):
    return load_model(find_checkpoint(str(random_llada))).denoiser


class Late:
    """A gate that stops at a step."""

    def __init__(self, step):
        self.step = step

    def fires(self, view):
        return view.step >= self.step


def job_of(prompt, rule, gate=None):
    def job(predictor):
        recorder = CellRecorder()
        decoded = decode(predictor, prompt, SHAPE, rule=rule, gate=gate, observer=recorder)
        return len(prompt), decoded, recorder.cells()

    return job


RULES = [
    Schedule(),
    CCTC(tau=0.02),
    Threshold(tau=0.05),
    KLASS(tau=0.01, epsilon=10.0),
    SlowFast(tau=0.05, tau_span=0.02, explore=2),
    WINO(tau=0.02),
]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: type(rule).__name__)
def test_a_decode_is_the_same_in_every_place_beside_every_neighbour(denoiser, rule):
    """Neighbours of other lengths, that end early or are followed by others, and none at all."""
    draw = np.random.default_rng(0)
    prompts = [draw.integers(0, 256, length) for length in (40, 33, 64, 50, 47, 61)]
    gates = [None, Late(2), None, Late(5), Late(1), None]
    jobs = [job_of(p, rule, gate) for p, gate in zip(prompts, gates, strict=True)]
    size = 3
    expected = {}
    for job in jobs:
        ((length, *result),) = run(denoiser, [job], size)
        expected[length] = result
    for turn in range(3):
        order = np.random.default_rng(turn).permutation(len(jobs))
        for length, decoded, cells in run(denoiser, [jobs[i] for i in order], size):
            same(decoded, expected[length][0])
            same(cells, expected[length][1])


def run(denoiser, jobs, size):
    model = BatchDenoiser(denoiser, size=size, prompt=64, length=SHAPE.length)
    return list(Batch(model, iter(jobs)))


def same(one, other):
    for spec in fields(one):
        if "seconds" not in spec.name:
            first, second = getattr(one, spec.name), getattr(other, spec.name)
            np.testing.assert_array_equal(first, second, err_msg=spec.name)


def test_a_broken_row_is_the_only_one_that_fails(denoiser, monkeypatch):
    """Logits that are no numbers end their own decode, and the others are what they were."""
    draw = np.random.default_rng(0)
    good, bad = (draw.integers(0, 256, 40) for _ in range(2))
    ((_, expected, _),) = run(denoiser, [job_of(good, Schedule())], 2)
    real = BatchDenoiser.logits

    def poisoned(self, requests):
        return [
            answer * torch.nan if request is not None and request.ids[0] == bad[0] else answer
            for request, answer in zip(requests, real(self, requests), strict=True)
        ]

    monkeypatch.setattr(BatchDenoiser, "logits", poisoned)
    model = BatchDenoiser(denoiser, size=2, prompt=64, length=SHAPE.length)
    results = iter(Batch(model, iter([job_of(bad, Schedule()), job_of(good, Schedule())])))
    same(next(results)[1], expected)
    with pytest.raises(ModelError, match="is not a number"):
        next(results)
