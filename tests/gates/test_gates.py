"""Vectorised gates against a plain reading of the specification's equations."""

import math
from dataclasses import fields
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from c4.errors import ConfigError
from c4.gates.cvee import CVEE, ConfidenceOnly, FixedPatience, StabilityOnly
from c4.gates.gate import ask, exit_step, needs_future, require_live, wants_cells
from c4.gates.oracle import Oracle
from c4.gates.progress import FixedProgress
from c4.gates.prophet import Prophet
from c4.gates.registry import GATES, make_gate
from c4.gates.run_signals import RunSignals, stack_signals
from c4.gates.sched import Aggregate, Clock, Curve, Region, SchED
from c4.gates.signals import NONE, Signals, consecutive, stability, stabilization_step
from c4.replay.calibration import Requirement, calibrate
from c4.replay.exits import RunSubset
from c4.replay.grids import DEFAULT_RANGES, grid_exits, make_grid
from c4.tasks import TASKS, AnswerReading, Example, Family

VALUES = ["zero", "one", "two"]
"""What the candidates and answers 0, 1 and 2 stand for."""
HALVES = [0.0, 0.25, 0.5, 0.7, 0.75, 1.0]


@st.composite
def trajectories(draw):
    """Signals with ties, missing candidates and undefined confidences, of 1 to 12 steps."""
    steps = draw(st.integers(1, 12))

    def column(values):
        return np.array(draw(st.lists(st.sampled_from(values), min_size=steps, max_size=steps)))

    candidate = column([NONE, 0, 1, 2]).astype(np.int32)
    # What is read where gates look may be another value than the whole text's answer.
    answer = np.where(column([True, True, True, False]), candidate, column([NONE, 0, 1, 2]))
    run, changes = stability(candidate)
    length, tail = 8, 3
    masked, tail_masked = column(list(range(9))), column(list(range(4)))
    gaps = {
        name: np.where(count == 0, np.nan, column([0.0, 2.5, 4.0, 7.5, 9.0]))
        for name, count in (("", masked), ("tail_", tail_masked))
        for name in (f"{name}masked_gap", f"{name}masked_gap_median", f"{name}masked_gap_quantile")
    }
    return Signals(
        step=np.arange(1, steps + 1, dtype=np.int32),
        budget=np.full(steps, 12, dtype=np.int32),
        candidate=candidate,
        span_start=np.zeros(steps, dtype=np.int32),
        span_end=np.ones(steps, dtype=np.int32),
        confidence=np.where(candidate == NONE, np.nan, column([*HALVES, math.nan])),
        entropy=np.zeros(steps),
        run=run,
        changes=changes,
        region_gap=column([0.0, 2.5, 4.9, 5.0, 7.5, 9.0]),
        masked=masked.astype(np.int32),
        changed=np.where(np.arange(steps) == 0, 1.0, column([0.0, 0.1, 1.0])),
        tail_masked=tail_masked.astype(np.int32),
        tail_changed=np.where(np.arange(steps) == 0, 1.0, column([0.0, 0.1, 1.0])),
        length=np.full(steps, length, dtype=np.int32),
        tail_length=np.full(steps, tail, dtype=np.int32),
        answer=answer.astype(np.int32),
        **gaps,
    )


def stack(many):
    """Trajectories of any lengths as one run's signals, number by number."""
    parts = []
    for number, s in enumerate(many):
        one = Signals(**{f.name: getattr(s, f.name)[None] for f in fields(Signals)})
        parts.append(RunSignals(np.array([number]), one, [VALUES]))
    return stack_signals(parts)


def rows(s):
    """The signals, step by step."""
    names = [field.name for field in fields(Signals)]
    return [{name: getattr(s, name)[t].item() for name in names} for t in range(len(s.step))]


def cvee_by_hand(s, tau, gamma, p_min):
    """Section 3, word by word; run and changes counted here."""
    run = changes = 0
    last = None
    for t, row in enumerate(rows(s), start=1):
        if row["candidate"] == NONE:
            continue
        if last is None or row["candidate"] == last:
            run += 1
        else:
            run, changes = 1, changes + 1
        last = row["candidate"]
        confident = tau is None or row["confidence"] >= tau
        if confident and run >= max(p_min, math.ceil(gamma * changes)):
            return t
    return 0


@given(
    trajectories(),
    st.sampled_from(HALVES),
    st.sampled_from([0.0, 0.5, 1.5, 2.0]),
    st.integers(0, 5),
)
def test_cvee_and_its_arms_are_equation_4(s, tau, gamma, p_min):
    by_hand = {
        CVEE(tau, gamma, p_min): cvee_by_hand(s, tau, gamma, p_min),
        ConfidenceOnly(tau): cvee_by_hand(s, tau, 0, 0),
        StabilityOnly(gamma, p_min): cvee_by_hand(s, None, gamma, p_min),
        FixedPatience(tau, p_min): cvee_by_hand(s, tau, 0, p_min),
    }
    for gate, expected in by_hand.items():
        assert exit_step(gate.fires(s)) == expected


def prophet_by_hand(s, high, mid, low):
    for t, row in enumerate(rows(s), start=1):
        p = row["step"] / row["budget"]
        threshold = high if p < 0.33 else mid if p < 0.67 else low
        if row["region_gap"] >= threshold:
            return t
    return 0


@given(trajectories())
def test_prophet_is_a_staged_threshold(s):
    assert exit_step(Prophet(7.5, 5.0, 2.5).fires(s)) == prophet_by_hand(s, 7.5, 5.0, 2.5)


def sched_by_hand(s, gate):
    counter = 0
    prefix = "" if gate.region == "all" else "tail_"
    suffix = "" if gate.aggregate == "mean" else f"_{gate.aggregate}"
    for t, row in enumerate(rows(s), start=1):
        if row[f"{prefix}masked"] == 0:
            return t
        p = 1 - row[f"{prefix}masked"] / row[f"{prefix}length"]
        if p >= gate.min_progress and row[f"{prefix}changed"] <= gate.max_change_ratio:
            counter += 1
        else:
            counter = 0
        elapsed = min(1, (row["step"] - 1) / max(1, row["budget"] - 1))
        x = p if gate.clock == "committed" else elapsed
        high, low = gate.high, gate.low
        threshold = {
            "linear": high + (low - high) * x,
            "cosine": low + (high - low) * (1 + math.cos(math.pi * x)) / 2,
            "exponential": low + (high - low) * math.exp(-gate.k * x),
        }[gate.curve]
        mean = row[f"{prefix}masked_gap{suffix}"]
        # The same number, computed in another order, may differ in its last bit.
        above = mean >= threshold or math.isclose(mean, threshold, rel_tol=1e-12)
        if p >= gate.min_progress and above and counter > gate.patience:
            return t
    return 0


@given(
    trajectories(),
    st.sampled_from(list(Curve)),
    st.integers(0, 2),
    st.sampled_from([0.0, 0.3]),
    st.sampled_from([0.0, 0.1, 1.0]),
    st.sampled_from(list(Region)),
    st.sampled_from(list(Aggregate)),
    st.sampled_from(list(Clock)),
)
def test_sched_is_a_falling_threshold_with_patience(
    s, curve, patience, min_progress, ratio, region, aggregate, clock
):
    gate = SchED(
        high=7.6,
        low=2.3,
        curve=curve,
        patience=patience,
        min_progress=min_progress,
        max_change_ratio=ratio,
        region=region,
        aggregate=aggregate,
        clock=clock,
    )
    assert exit_step(gate.fires(s)) == sched_by_hand(s, gate)


@given(trajectories(), st.sampled_from([0.0, 0.3, 0.5, 1.0]))
def test_fixed_progress_stops_at_its_fraction(s, fraction):
    due = [t for t in range(1, len(s.step) + 1) if t / 12 >= fraction]
    assert exit_step(FixedProgress(fraction).fires(s)) == (due[0] if due else 0)


@given(trajectories())
def test_the_oracle_stops_where_every_later_candidate_is_the_full_decode_s_answer(s):
    values = s.candidate.tolist()
    final, count = s.answer[-1], len(values)
    settled = [u for u in range(1, count + 1) if all(v == final != NONE for v in values[u - 1 :])]
    assert stabilization_step(s) == (settled[0] if settled else count + 1)
    assert exit_step(Oracle().fires(s)) == (settled[0] if settled else 0)


@given(trajectories(), st.tuples(st.sampled_from(HALVES), st.sampled_from(HALVES)))
def test_a_stricter_threshold_never_exits_earlier(s, taus):
    loose, strict = (exit_step(CVEE(tau=tau, p_min=1).fires(s)) for tau in sorted(taus))
    assert (loose or 99) <= (strict or 99)


@pytest.mark.parametrize("name", DEFAULT_RANGES)
@settings(max_examples=10)
@given(many=st.lists(trajectories(), min_size=1, max_size=3))
def test_the_exits_of_a_grid_are_those_of_its_settings_one_by_one(name, many):
    grid = small_grid(name)
    alone = [[exit_step(grid.make(setting).fires(s)) for s in many] for setting in grid.settings()]
    np.testing.assert_array_equal(grid_exits(grid, stack(many)), alone)


def small_grid(name):
    """A few values of everything that a gate's grid sweeps."""
    small = {
        "tau": "0.7,0,0.25,1", "gamma": "2,0.5", "p_min": "1,3", "high": "7.5,5", "mid": "5",
        "low": "4,2.5", "patience": "0,1", "curve": "cosine,linear", "fraction": "0.5,1,0.25",
    }  # fmt: skip
    return make_grid(name, {k: small[k] for k in DEFAULT_RANGES[name]})


class FewMasked:
    """Fires wherever little is masked, so on padding too if it is let."""

    def fires(self, s):
        return s.masked < 3


@pytest.mark.parametrize("name", [*GATES, "few masked"])
@settings(max_examples=40)
@given(many=st.lists(trajectories(), min_size=2, max_size=4))
def test_a_gate_stops_stacked_trajectories_where_it_stops_them_alone(name, many):
    gate = make_gate(name) if name in GATES else FewMasked()
    alone = [exit_step(gate.fires(s)) for s in many]
    assert exit_step(ask(gate, stack(many).signals)).tolist() == alone


class Foresight(FewMasked):
    """A gate of a user's own that says what it needs."""

    wants_cells = True
    needs_future = True


def test_a_gate_needs_only_what_it_says_that_it_needs():
    plain, seer = FewMasked(), Foresight()
    assert (wants_cells(plain), needs_future(plain)) == (False, False)
    assert (wants_cells(seer), needs_future(seer)) == (True, True)
    assert [name for name, kind in GATES.items() if needs_future(kind)] == ["oracle"]
    require_live(plain)
    with pytest.raises(ConfigError, match="Foresight needs to know later steps"):
        require_live(seer)


@given(st.lists(trajectories(), min_size=2, max_size=4))
def test_stacked_trajectories_settle_where_they_do_alone(many):
    stacked = stack(many).signals
    assert stacked.steps.tolist() == [len(s.step) for s in many]
    assert stabilization_step(stacked).tolist() == [stabilization_step(s) for s in many]
    assert stacked.last("answer")[:, 0].tolist() == [s.answer[-1] for s in many]


@pytest.mark.parametrize("name", DEFAULT_RANGES)
@settings(max_examples=10)
@given(many=st.lists(trajectories(), min_size=2, max_size=4))
def test_a_calibration_counts_every_trajectory_as_it_is_alone(name, many):
    grid = small_grid(name)
    table = calibrate(grid, [subset(many)], Requirement()).table
    alone = [calibrate(grid, [subset([s])], Requirement()).table for s in many]
    for column in ("steps", "accuracy_gsm8k"):
        mean = np.mean([one[column].to_numpy() for one in alone], axis=0)
        np.testing.assert_allclose(table[column].to_numpy(), mean)
    losses = np.sum([one["losses"].to_numpy() for one in alone], axis=0)
    np.testing.assert_array_equal(table["losses"].to_numpy(), losses)


def subset(many):
    """Trajectories of a run whose right answer is always "one"."""
    answers = [SimpleNamespace(trajectory=i, example=Example("", "one")) for i in range(len(many))]
    facts = {"task_name": "gsm8k", "method": "baseline", "reading": AnswerReading()}
    run = SimpleNamespace(**facts, task=TASKS["gsm8k"], rows=lambda: answers, cells=tuple)
    return RunSubset(run, stack(many))


@given(st.lists(st.booleans(), min_size=1, max_size=10))
def test_consecutive_counts_from_the_last_break(holds):
    count, expected = 0, []
    for value in holds:
        count = count + 1 if value else 0
        expected.append(count)
    assert consecutive(np.array(holds)).tolist() == expected


@pytest.mark.parametrize("name", GATES)
def test_every_gate_can_be_made_for_every_family(name):
    for family in Family:
        assert callable(make_gate(name, family).fires)


def test_the_paper_s_settings_come_with_the_family_and_yield_to_the_user():
    assert make_gate("prophet", Family.CODE) == Prophet(7.5, 5.0, 4.5)
    sched = make_gate("sched", Family.LONG_REASONING, low=1.0)
    assert (sched.high, sched.low, sched.curve, sched.patience) == (8.0, 1.0, "linear", 4)
    assert make_gate("cvee", Family.CODE) == CVEE(0.7, 2.0, 3)


@pytest.mark.parametrize(
    ("name", "params", "message"),
    [
        ("cvee", {"tau": 7}, "CVEE takes tau from 0 to 1, not 7"),
        ("cvee", {"gamma": -1}, "CVEE takes gamma at least 0, not -1"),
        ("cvee", {"tua": 0.5}, "no parameter of cvee named 'tua'; did you mean tau"),
        ("sched", {"curve": "square"}, "sched takes curve of linear, cosine, exponential"),
        ("cve", {}, r"no gate named 'cve'; did you mean cvee\? \(one of your own: module:obj"),
        ("cvee:tau=2,gamma=1", {}, "give settings with --set cvee.tau=2 --set cvee.gamma=1"),
        ("no_such_module:Gate", {}, "cannot load the gate 'no_such_module:Gate'"),
        ("math:pi", {}, "math:pi is no gate"),
    ],
)
def test_bad_gates_and_parameters_are_refused(name, params, message):
    with pytest.raises(ConfigError, match=message):
        make_gate(name, **params)
