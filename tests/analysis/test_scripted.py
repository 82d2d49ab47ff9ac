"""Recordings whose answers are known step by step: they appear, go, and come back."""

from dataclasses import replace

import numpy as np
import pytest
from conftest import made_reading

from c4.analysis import phase_summary, phase_table, stabilization_table, trace_table
from c4.analysis.phases import gate_signals
from c4.gates.progress import FixedProgress
from c4.models import Denoiser
from c4.record.plan import RunConfig, load_planned, plan_recording
from c4.record.recorder import start_recording
from c4.store.runs import open_run

STEPS = 24
TAIL = 16
"""Where GSM8K's answer is looked for, of 24 positions."""

RETURNS = ["7"] * 4 + [None] * 4 + ["9"] * 4 + ["7"] * 12
EARLY = ["5"] * STEPS
NEVER = ["3"] * 10 + [None] * 14
BEFORE = ["x" * 12 + "9" * 12] * STEPS
"""A number that begins before the place where gates look."""


class Spoken(Denoiser):
    """Says a script's answer at the end of the buffer, surely, and nothing of note elsewhere."""

    def __init__(self, model, scripts):
        super().__init__(model.denoiser.model, mask_id=model.denoiser.mask_id, shift=False)
        self.letters = model.tokenizer.backend_tokenizer
        self.answers = [answer for script in scripts for answer in script]

    def read(self, ids, start):
        answer = self.answers.pop(0)
        text = "x" * TAIL + (answer or "x") * (STEPS - TAIL)
        text = answer if answer and len(answer) == STEPS else text
        token = np.array(self.letters.encode(text).ids, dtype=np.int64)
        sure = np.full(STEPS, 0.9, dtype=np.float32)
        return made_reading(token, sure, sure * 10, 1 - sure)


@pytest.fixture(scope="module")
def run(random_llada, tmp_path_factory):
    config = RunConfig(
        task="gsm8k",
        model=str(random_llada),
        source="embedded",
        n=4,
        skip=40,
        out=tmp_path_factory.mktemp("scripted"),
    )
    plan = plan_recording(config)
    model = load_planned(plan)
    model = replace(model, denoiser=Spoken(model, [RETURNS, EARLY, NEVER, BEFORE]))
    with start_recording(plan, model) as recording:
        list(recording)
    return open_run(plan.folder)


def test_an_answer_that_goes_and_returns_settles_when_it_returns(run):
    frame = stabilization_table(run)
    assert frame["stabilization"].to_list() == [13 / STEPS, 1 / STEPS, None, None]
    assert frame["first_appearance"].to_list() == [1 / STEPS, 1 / STEPS, None, None]


def test_a_premature_exit_is_early_by_what_was_missing(run):
    gates = {"soon": FixedProgress(0.25), "late": FixedProgress(0.75)}
    phases = phase_table(run, gates)
    soon = phases.filter(gate="soon")
    assert soon["exit"].to_list() == [0.25] * 4
    assert soon["premature"].to_list() == [True, False, None, None]
    assert soon["early_by"].to_list() == [pytest.approx(7 / STEPS), None, None, None]
    assert phases.filter(gate="late")["premature"].to_list() == [False, False, None, None]
    summary = phase_summary(phases).filter(gate="soon").row(0, named=True)
    assert summary["premature"] == pytest.approx(1 / 2)
    assert summary["never"] == 2
    assert summary["early_by"] == pytest.approx(7 / STEPS)


def test_a_trace_shows_the_answer_come_go_and_return(run):
    trace = trace_table(run, 40, {})
    digits = [value and value[0] for value in trace["candidate"].to_list()]
    assert digits == RETURNS
    assert trace["settled"].to_list() == [step >= 13 for step in range(1, STEPS + 1)]
    assert trace["final"].to_list() == [answer == "7" for answer in RETURNS]


def test_what_gates_read_of_an_answer_that_begins_elsewhere_is_not_final(run):
    trace = trace_table(run, 43, {})
    assert trace["candidate"].unique().to_list() == ["9" * (STEPS - TAIL)]
    assert not trace["final"].any()
    assert not trace["settled"].any()


def test_moments_are_where_answers_settle_and_gates_stop(run):
    moments = gate_signals([run], {"soon": FixedProgress(0.25)}).filter(signal="confidence")
    settled = moments.filter(kind="settled").select("trajectory", "progress")
    assert settled.rows() == [(40, 13 / STEPS), (41, 1 / STEPS)]
    stops = moments.filter(kind="trigger")
    assert stops["progress"].to_list() == [0.25] * 4
    assert stops["value"].to_list() == pytest.approx([0.9] * 4, abs=1e-2)
