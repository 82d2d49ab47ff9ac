"""Numbers about methods: totals, pairs, blocks, sweeps, and what they must never claim."""

import json

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from c4.analysis import mcnemar, method_totals, paired_table, stabilization_summary
from c4.analysis.blocks import block_usage, time_shares
from c4.analysis.cohorts import cohort_key, held_out
from c4.analysis.outcomes import OUTCOMES, best_source, scheduled_steps
from c4.analysis.stabilization import settled_by, settled_interval
from c4.analysis.sweeps import h_sweep, in_sweep, scaling_table, wino_table
from c4.analysis.traces import telling_trajectory
from c4.tasks import TASKS, Shape
from c4.tasks.examples import examples_set_aside


def outcome(method="c4", trajectory=40, correct=True, **changes):
    """One row, of a decode of 4 blocks of 8 steps."""
    row = {
        "model": "tiny",
        "task": "gsm8k",
        "family": "long_reasoning",
        "cohort": "x",
        "method": method,
        "how": "decoded",
        "trajectory": trajectory,
        "pool": False,
        "length": 32,
        "budget": 32,
        "block_length": 8,
        "steps": 16,
        "fired": False,
        "answer": "1" if correct else "2",
        "correct": correct,
        "block_steps": [8, 8, 0, 0],
        "block_seconds": [0.3, 0.1, 0.0, 0.0],
        "confirmed": 0.25,
        "settings": "{}",
    }
    return row | changes


def frame(*rows):
    return pl.DataFrame(list(rows), schema=OUTCOMES)


def against(pairs):
    """A baseline and a method, by (baseline right, method right)."""
    rows = []
    for i, (full, given_) in enumerate(pairs):
        rows += [outcome("baseline", 40 + i, full), outcome("c4", 40 + i, given_)]
    return frame(*rows)


@given(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=30))
def test_pairs_count_what_only_one_of_the_two_gets_right(pairs):
    row = paired_table(against(pairs)).row(0, named=True)
    assert row["b"] == sum(full and not given_ for full, given_ in pairs)
    assert row["c"] == sum(given_ and not full for full, given_ in pairs)
    difference = 100 * np.mean([int(g) - int(f) for f, g in pairs])
    assert row["difference"] == pytest.approx(difference)
    assert row["low"] <= difference + 1e-9
    assert row["high"] >= difference - 1e-9
    assert row["identical"] == pytest.approx(np.mean([f == g for f, g in pairs]))


@pytest.mark.parametrize(("b", "c"), [(0, 0), (1, 0), (5, 1), (3, 3), (10, 2)])
def test_mcnemar_is_the_exact_two_sided_test(b, c):
    n = b + c
    tail = sum(stats.binom.pmf(k, n, 0.5) for k in range(n + 1) if abs(k - n / 2) >= abs(b - n / 2))
    assert mcnemar(b, c) == pytest.approx(min(1.0, tail))


def test_answers_that_are_both_missing_are_identical():
    rows = [outcome(m, correct=False, answer=None) for m in ("baseline", "c4")]
    assert paired_table(frame(*rows))["identical"].item() == 1


def test_only_decodes_of_one_cohort_are_paired():
    rows = [outcome("baseline", cohort="old weights"), outcome("c4", cohort="new weights")]
    assert paired_table(frame(*rows)).is_empty()
    identity = {"model": "tiny", "weights_sha256": "a", "shape": {"length": 8}}
    assert cohort_key(identity) == cohort_key(identity | {"method": "c4", "gate": None})
    for other in ({"weights_sha256": "b"}, {"tokenizer_sha256": "c"}, {"chat_template": True}):
        assert cohort_key(identity) != cohort_key(identity | other)


def test_the_drop_is_taken_over_the_examples_that_both_have():
    pairs = [outcome("baseline", i, i < 42) for i in range(40, 44)] + [outcome("c4", 40, False)]
    row = method_totals(frame(*pairs)).filter(pl.col("method") == "c4").row(0, named=True)
    assert (row["n"], row["paired"], row["drop"]) == (1, 1, 100.0)


def test_without_a_baseline_there_is_no_drop_and_without_grades_no_accuracy():
    row = method_totals(frame(outcome("c4", correct=None))).row(0, named=True)
    assert row["drop"] is None
    assert row["accuracy"] is None


def test_examples_of_the_pool_are_left_out_where_there_are_others():
    pooled = outcome(trajectory=3, pool=True)
    assert held_out(frame(pooled, outcome(trajectory=40)))["trajectory"].to_list() == [40]
    assert held_out(frame(pooled)).height == 1
    elsewhere = outcome(trajectory=40, cohort="another shape")
    assert held_out(frame(pooled, elsewhere)).height == 2


def test_files_of_users_own_have_no_pool():
    kept = {("gsm8k", "embedded"): 40, ("gsm8k", "hub"): 40, ("humaneval", "hub"): 0}
    for (task, source), count in {**kept, ("gsm8k", "file"): 0}.items():
        assert examples_set_aside(TASKS[task], source) == count


def test_one_source_stands_for_a_method_and_the_fuller_one_wins():
    decoded = [outcome("cvee", 40)]
    replayed = [outcome("cvee", i, how="replayed") for i in (40, 41)]
    assert best_source(frame(*decoded, *replayed))["how"].unique().to_list() == ["replayed"]
    assert best_source(frame(*decoded, *replayed[:1]))["how"].to_list() == ["decoded"]


@given(steps=st.integers(1, 32))
def test_a_schedule_spends_its_blocks_in_order(steps):
    spent = pl.DataFrame({"steps": [steps]}).select(
        scheduled_steps(Shape(length=32, budget=32, block_length=8))
    )
    passes = spent.item().to_list()
    assert sum(passes) == steps
    assert passes == sorted(passes, reverse=True)
    assert max(passes) <= 8


def test_blocks_hold_passes_and_their_share_of_the_budget():
    outcomes = frame(outcome("c4", 40), outcome("c4", 41, block_steps=[4, 0, 0, 0], steps=4))
    blocks = block_usage(outcomes, method_totals(outcomes))
    assert blocks["passes"].to_list() == [6, 4, 0, 0]
    assert blocks["share"].to_list() == [0.75, 0.5, 0, 0]
    assert blocks["passes"].sum() == pytest.approx(blocks["steps"][0])


def test_time_shares_are_measured_and_speeds_come_from_a_bench_alone():
    bench = pl.DataFrame({"cohort": ["x", "y"], "method": "c4", "tps": [7.0, 9.0]})
    shares = time_shares(frame(outcome("c4"), outcome("baseline", block_seconds=None)), bench)
    assert shares["method"].unique().to_list() == ["c4"]
    assert shares["share"].to_list() == pytest.approx([0.75, 0.25, 0, 0])
    assert shares["tps"].unique().to_list() == [7.0]


def test_every_shape_is_in_the_scaling_table():
    sweep = outcome("c4", cohort="short", length=16)
    fewer = outcome("c4", cohort="fewer steps", budget=16)
    outcomes = frame(outcome("c4"), outcome("baseline"), sweep)
    shapes = scaling_table(method_totals(outcomes))
    assert shapes.select("length", "blocks").rows() == [(16, 2), (32, 4), (32, 4)]
    budgets = scaling_table(method_totals(frame(outcome("c4"), fewer)))
    assert budgets.select("length", "budget").rows() == [(32, 16), (32, 32)]


@pytest.mark.parametrize(
    ("label", "left_out"),
    [
        ("c4", False),
        ("c4,H=2", True),
        ("c4,H=inf", True),
        ("c4,H=2,cvee.tau=0.5", False),
        ("c4,cvee.tau=0.5,p_min=1", False),
        ("cctc,H=2", False),
        ("wino+cvee", False),
        ("wino+cvee,p_min=16", True),
        ("mine, with a comma", False),
    ],
)
def test_points_of_sweeps_are_told_from_other_variants(label, left_out):
    assert in_sweep(label) == left_out


def test_a_sweep_over_h_takes_what_changes_nothing_else():
    def with_h(label, hole):
        settings = {"rule": {"name": "cctc", "H": hole}, "gate": {"name": "cvee"}}
        return outcome(label, settings=json.dumps(settings))

    rows = [with_h("c4", 1.0), with_h("c4,H=inf", "inf"), with_h("c4,H=0,tau=0.9", 0.0)]
    outcomes = frame(*rows)
    sweep = h_sweep(outcomes, method_totals(outcomes))
    assert sorted(sweep["H"].to_list(), key=str) == [1, None]
    assert sweep["confirmed"].to_list() == [0.25, 0.25]


def test_wino_reports_the_best_setting_only_where_the_deployed_one_fails():
    right = [outcome("wino", i, True, steps=12) for i in range(40, 44)]
    deployed = [outcome("wino+cvee", i, i > 41, steps=4) for i in range(40, 44)]
    variant = [outcome("wino+cvee,p_min=16", i, True, steps=11) for i in range(40, 44)]
    row = wino_table(method_totals(frame(*right, *deployed, *variant))).row(0, named=True)
    assert (row["deployed_accuracy"], row["best_accuracy"], row["best_steps"]) == (0.5, 1.0, 11)
    assert row["settings"] == 2
    holding = [outcome("wino+cvee", i, True, steps=4) for i in range(40, 44)]
    held = wino_table(method_totals(frame(*right, *holding, *variant))).row(0, named=True)
    assert held["best_steps"] is None


def test_wino_runs_without_grades_have_steps_and_no_accuracy():
    rows = [outcome(m, correct=None, steps=9) for m in ("wino", "wino+cvee", "wino+cvee,p_min=16")]
    row = wino_table(method_totals(frame(*rows))).row(0, named=True)
    assert (row["wino_steps"], row["deployed_steps"]) == (9, 9)
    assert row["wino_accuracy"] is row["deployed_accuracy"] is row["best_steps"] is None
    graded = [outcome("wino", correct=True), *rows[1:]]
    assert wino_table(method_totals(frame(*graded)))["best_steps"].item() is None


progress = st.lists(st.one_of(st.none(), st.sampled_from([0.1, 0.4, 1.0])), min_size=1, max_size=12)


@given(progress)
def test_the_interval_of_s_p_holds_values_that_occur(values):
    series = pl.Series(values, dtype=pl.Float64)
    low, high = settled_interval(series, 0.9)
    assert {low, high} <= {*values, None}
    if high is not None:
        assert low is not None
        assert low <= high
    if settled_by(series, 0.9) is not None:
        assert low is not None
        assert low <= settled_by(series, 0.9)


def test_any_share_can_be_asked_for():
    settling = pl.DataFrame(
        {
            "model": "m",
            "task": "math",
            "family": "long_reasoning",
            "cohort": "x",
            "pool": False,
            "trajectory": range(4),
            "stabilization": [0.1, 0.2, 0.3, None],
            "first_appearance": [0.1, 0.1, 0.2, None],
        }
    )
    summary = stabilization_summary(settling, shares=(0.25, 0.75, 1.0))
    assert summary["s_p"].to_list() == [0.1, 0.3, None]
    assert summary["appeared"].to_list() == [0.1, 0.2, None]
    assert summary["never"].to_list() == [1, 1, 1]


def test_the_telling_trajectory_is_one_of_long_reasoning_that_gates_disagree_on():
    rows = {
        "model": "m",
        "task": ["mmlu", "math", "math", "math", "math"],
        "family": ["letters", *["long_reasoning"] * 4],
        "cohort": ["a", *"bbbb"],
        "trajectory": [0, 1, 1, 2, 2],
        "gate": ["cvee", "cvee", "prophet", "cvee", "prophet"],
        "fired": True,
        "exit": [0.1, 0.9, 0.8, 0.9, 0.1],
        "premature": [False, False, False, False, True],
    }
    phases = pl.DataFrame(rows)
    assert telling_trajectory(phases) == ("b", 2)
    assert telling_trajectory(phases, {("b", 1)}) == ("b", 1)  # which CVEE stops, and is right
    assert telling_trajectory(phases.clear()) is None


fractions = st.lists(st.one_of(st.none(), st.sampled_from([0.1, 0.25, 0.5, 1.0])), min_size=1)


@given(fractions, st.sampled_from([0.1, 0.5, 0.9, 1.0]))
def test_s_p_is_the_smallest_progress_by_which_a_share_has_settled(values, share):
    found = settled_by(pl.Series(values, dtype=pl.Float64), share)
    candidates = sorted({v for v in values if v is not None})
    by_hand = [
        u for u in candidates if np.mean([v is not None and v <= u for v in values]) >= share - 1e-9
    ]
    assert found == (by_hand[0] if by_hand else None)
