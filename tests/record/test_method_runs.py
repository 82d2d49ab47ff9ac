"""Runs of every method: what is kept of them, and that they are what they say."""

import json
from dataclasses import fields, replace

import numpy as np
import pytest
from conftest import save_llada

from c4.errors import ConfigError, RunError
from c4.gates.registry import make_gate
from c4.record.methods import METHODS
from c4.record.plan import RunConfig, load_planned, plan_methods
from c4.record.recorder import start_recording
from c4.record.regrade import regrade
from c4.record.settings import MethodChoice
from c4.replay.decisions import replay
from c4.store.origins import Origin
from c4.store.runs import find_recordings, find_runs, open_run
from c4.store.summary import summarise
from c4.tasks import AnswerReading
from tests.commands import done
from tests.recordings import carry_out, contents, record, run


@pytest.fixture
def config(random_llada, tmp_path):
    return RunConfig(
        task="svamp", model=str(random_llada), source="embedded", n=3, skip=0, out=tmp_path / "runs"
    )


@pytest.mark.parametrize(
    ("task", "model"), [("mmlu", "tiny"), ("svamp", None), ("humaneval", None)]
)
def test_with_both_gates_off_a_run_is_the_recording(config, task, model):
    config = replace(config, task=task, model=model or config.model, n=1, graded=False)
    recording, recorded = record(config)
    folder, live = run(config, "baseline", cells=True, label="whole")
    assert folder != recording
    assert [row.final_ids for row in live] == [row.final_ids for row in recorded]
    assert contents(folder) == contents(recording)


@pytest.mark.parametrize("method", METHODS)
def test_every_method_accounts_for_every_position(config, method):
    folder, decoded = run(config, method)
    live = open_run(folder)
    assert (live.method, live.task_name, live.model) == (method, "svamp", "random-llada")
    rows = list(live.rows())
    assert [row.trajectory for row in rows] == [row.trajectory for row in decoded] == [0, 1, 2]
    allowed = {Origin.SCHEDULE, Origin.FILL} | {
        "cctc": {Origin.CORE, Origin.CONFIRMED, Origin.ACCEPTED},
        "schedule": set(),
    }.get(METHODS[method].rule, {Origin.ACCEPTED})
    for row in rows:
        assert len(row.block_steps) == len(row.block_seconds) == 8
        assert sum(row.block_steps) == row.steps
        assert len(row.committed_by) == len(row.commit_step) == len(row.final_ids) == row.length
        assert set(row.committed_by) <= allowed
        assert max(row.commit_step) == row.steps
        assert row.exit_step in (None, row.steps)
        assert row.exit_step is None or METHODS[method].gate is not None
        assert (Origin.FILL in row.committed_by) <= (row.exit_step is not None)
        assert row.revoked == 0 or METHODS[method].rule == "wino"
        assert sum(row.block_seconds) <= row.wall_seconds


def test_the_embedded_model_runs_every_method_on_the_same_examples(config):
    config = replace(config, task="mmlu", model="tiny", n=1)
    plans = plan_methods(config, MethodChoice(list(METHODS)))
    model = load_planned(plans[0])
    steps = {}
    for plan in plans:
        (row,) = carry_out(plan, model)
        steps[plan.method.label] = row.steps
        if row.exit_step is None:
            assert min(row.block_steps) >= 1
    assert steps["baseline"] == plans[0].shape.budget
    assert max(steps.values()) == steps["baseline"]


def test_a_sampler_s_steps_are_no_recording_unless_they_are_named(config):
    folder, _ = run(config, "c4", cells=True)
    assert folder == config.out / "model=random-llada" / "task=svamp" / "method=c4"
    assert find_recordings(config.out) == []
    without_cells, _ = run(config, "klass")
    for above in (folder.parent, folder.parents[1], config.out):
        assert find_runs(above) == [folder, without_cells]
        assert find_recordings(above) == []
    (named,) = find_recordings(folder)
    assert (named.folder, named.is_baseline, named.has_cells) == (folder, False, True)
    recording, _ = record(config)
    assert [run.folder for run in find_recordings(config.out)] == [recording]


def test_the_identity_says_every_parameter_of_the_method(config):
    folder, _ = run(config, "c4")
    identity = open_run(folder).manifest.identity
    assert (identity["method"], identity["label"], identity["cells"]) == ("c4", "c4", False)
    assert identity["forward"] == {"cache": "off"}
    assert identity["rule"] == {
        "name": "cctc",
        "tau": 0.8,
        "H": 1,
        "confirm": True,
        "blocks": "all",
        "last_step_valve": True,
        "stall_valve": True,
    }
    reading = {"style": "careful", "ending": AnswerReading().ending}
    settings = {"tau": 0.7, "gamma": 2.0, "p_min": 3}
    assert identity["gate"] == {"name": "cvee", **settings, "reading": reading}


@pytest.mark.parametrize("method", ["wino", "wino+cvee"])
def test_wino_on_dream_is_refused_before_anything_is_made(config, tmp_path, method):
    dream = save_llada(tmp_path / "dream", model_type="Dream")
    with pytest.raises(ConfigError, match="wino cannot run on a model that predicts"):
        plan_methods(replace(config, model=str(dream)), MethodChoice(["baseline", method]))
    assert not config.out.exists()


@pytest.mark.parametrize(("blocks", "fits"), [("0,7", True), ("07", True), ("0,8", False)])
def test_a_block_to_accelerate_must_be_there(config, blocks, fits):
    choice = MethodChoice(["c4"], [f"blocks={blocks}"])
    if fits:
        assert plan_methods(config, choice)
    else:
        with pytest.raises(ConfigError, match=r"no block 8 to accelerate: .* are blocks 0 to 7"):
            plan_methods(config, choice)


def test_results_without_cells_are_no_recording(config):
    folder, _ = run(config, "baseline")
    assert find_recordings(config.out) == []
    with pytest.raises(RunError, match=r"only results are kept here; .* c4 run --cells"):
        list(open_run(folder))
    with pytest.raises(RunError, match="cells: False there, True here"):
        record(config)
    recording, _ = record(replace(config, fresh=True))
    assert recording == folder
    assert len(list(open_run(folder))) == 3


@pytest.mark.parametrize("method", ["baseline", "fast-dllm"])
def test_a_run_that_keeps_cells_goes_on_keeping_them_whoever_asks(config, tmp_path, method):
    first, _ = run(replace(config, n=2), method, cells=True)
    folder, rest = run(config, method)
    assert folder == first
    assert [row.trajectory for row in rest] == [2]
    assert open_run(folder).manifest.identity["cells"] is True
    whole, _ = run(replace(config, out=tmp_path / "whole"), method, cells=True)
    assert contents(folder) == contents(whole)
    fresh, decoded = run(replace(config, fresh=True), method)  # redone, and its cells with it
    assert (fresh, len(decoded), open_run(fresh).has_cells) == (folder, 3, True)


def test_running_the_baseline_goes_on_with_a_recording_and_keeps_its_cells(config):
    folder, _ = record(replace(config, n=2))
    words = ["--task", "svamp", "--model", config.model, "--source", "embedded", "--n", 3]
    words += ["--skip", 0, "--out", config.out, "--json"]
    (summary,) = json.loads(done("run", "--method", "baseline", *words).stdout)
    assert (summary["folder"], summary["n"]) == (str(folder), 3)
    assert find_runs(config.out) == [folder]
    recording = open_run(folder)
    assert recording.has_cells
    assert [t.cells.shape for t in recording] == [(24, 24)] * 3


@pytest.mark.parametrize("task", ["mmlu", "svamp"])
def test_a_gate_over_a_recorded_sampler_is_the_two_together(config, task):
    """Replaying CVEE over WINO's own steps gives what WINO + CVEE does live."""
    config = replace(config, task=task, model="tiny", n=3)
    loose = ("cvee.tau=0.1", "p_min=1", "gamma=0")
    alone, _ = run(config, "wino", cells=True)
    both, _ = run(config, "wino+cvee", *loose, cells=True)
    gate = make_gate("cvee", tau=0.1, p_min=1.0, gamma=0.0)
    (decisions,) = replay(open_run(alone), {"cvee": gate})
    live = list(open_run(both).rows())
    assert decisions["steps"].to_list() == [row.steps for row in live]
    assert decisions["text"].to_list() == [row.text for row in live]
    assert decisions["fired"].to_list() == [row.exit_step is not None for row in live]
    assert sum(row.exit_step is not None for row in live) > 0
    for whole, cut in zip(open_run(alone), open_run(both), strict=True):
        steps = cut.row.steps
        for spec in fields(cut.cells):  # nothing changes before the gate fires
            np.testing.assert_array_equal(
                getattr(whole.cells, spec.name)[:steps], getattr(cut.cells, spec.name)
            )


def test_decoding_again_is_done_by_the_method_s_rule(config):
    class Never:
        def fires(self, view):
            return False

    (plan,) = plan_methods(config, MethodChoice(["fast-dllm"], ["tau=0.01"]))
    with start_recording(plan) as recording:
        for row in list(recording):
            assert recording.decode_again(row, Never()).decode == row.decode
            assert row.steps < plan.shape.budget


def test_wino_takes_back_and_says_so(config):
    wide = replace(config, length=32, block_length=16)
    folder, _ = run(wide, "wino", "wino.tau=0.01", cells=True)
    rows = list(open_run(folder).rows())
    assert sum(row.revoked for row in rows) > 0
    for row, trajectory in zip(rows, open_run(folder), strict=True):
        masked = trajectory.cells.masked
        assert row.revoked == (masked[1:] & ~masked[:-1]).sum()


def test_an_interrupted_run_goes_on(config, tmp_path):
    config = replace(config, n=5)
    (plan,) = plan_methods(config, MethodChoice(["c4"]))
    with start_recording(plan) as recording:
        for _ in recording:
            break
    before = len(open_run(plan.folder))
    assert 1 <= before < 5
    folder, rest = run(config, "c4")
    assert len(rest) == 5 - before
    whole, _ = run(replace(config, out=tmp_path / "whole"), "c4")
    assert contents(folder) == contents(whole)
    assert {p.name for p in folder.iterdir() if p.is_dir() and any(p.iterdir())} == {"rows"}


def test_another_setting_has_a_folder_of_its_own_and_another_seed_is_refused(config):
    plain, _ = run(config, "c4")
    changed, _ = run(config, "c4", "H=2")
    assert (plain.name, changed.name) == ("method=c4", "method=c4,H%3D2")
    assert open_run(changed).method == "c4,H=2"
    with pytest.raises(RunError, match="seed: 0 there, 1 here"):
        run(replace(config, seed=1), "c4")
    with pytest.raises(RunError, match="cells: False there, True here"):
        run(config, "c4", cells=True)


@pytest.mark.parametrize(("task", "cells"), [("svamp", False), ("humaneval", True)])
def test_what_was_not_graded_can_be_graded_later(config, tmp_path, task, cells):
    config = replace(config, task=task, unsafe_code=True, n=2)
    folder, _ = run(replace(config, graded=False), "c4", cells=cells)
    assert [row.correct for row in open_run(folder).rows()] == [None, None]
    assert summarise(folder).accuracy is None
    assert len(list(regrade(folder, unsafe_code=True))) == 2
    assert list(regrade(folder, unsafe_code=True)) == []
    assert len(list(regrade(folder, unsafe_code=True, everything=True))) == 2
    at_once, _ = run(replace(config, out=tmp_path / "at once"), "c4", cells=cells)
    assert contents(folder) == contents(at_once)
    assert summarise(folder).graded == 2
    assert [row.correct for row in open_run(folder).rows()] == [False, False]


def test_the_summary_compares_with_the_baseline_of_the_same_examples(config):
    folder, _ = run(config, "c4")
    assert summarise(folder).drop_points is None
    baseline, _ = run(config, "baseline")
    summary = summarise(folder)
    assert summary.drop_points is not None
    rows = {row.trajectory: row for row in open_run(folder).rows()}
    base = {row.trajectory: row for row in open_run(baseline).rows()}
    same = [rows[i].answer == base[i].answer for i in rows]
    assert summary.identical == sum(same) / 3
    assert summary.steps == sum(row.steps for row in rows.values()) / 3
    assert summary.saving == pytest.approx(1 - summary.steps / 24)
    assert summarise(folder, {1}).n == 1
    with pytest.raises(RunError, match="none of the examples"):
        summarise(folder, {77})


@pytest.mark.parametrize("recorded_first", [True, False])
def test_a_recording_is_the_baseline(config, recorded_first):
    """Of the examples that both have, whichever was there first."""
    if recorded_first:
        baseline, _ = record(replace(config, n=2))
    folder, _ = run(config, "c4")
    if not recorded_first:
        assert (summarise(folder).drop_points, summarise(folder).identical) == (None, None)
        baseline, _ = record(replace(config, n=2))
    assert baseline.name == "method=baseline"
    rows, base = (list(open_run(f).rows())[:2] for f in (folder, baseline))
    lost = sum(b.correct - a.correct for a, b in zip(rows, base, strict=True))
    same = sum(a.answer == b.answer for a, b in zip(rows, base, strict=True))
    summary = summarise(folder)
    assert (summary.drop_points, summary.identical) == (100 * lost / 2, same / 2)
    assert summarise(folder, {2}).drop_points is None  # which the recording lacks
    own = summarise(baseline)
    assert (own.drop_points, own.identical, own.saving) == (0, 1, 0)


@pytest.mark.parametrize(
    ("change", "label", "is_found"), [({"seed": 1}, None, False), ({}, "whole", True)]
)
def test_a_baseline_has_the_same_seed_and_any_label(config, change, label, is_found):
    folder, _ = run(config, "c4")
    run(replace(config, **change), "baseline", label=label)
    assert (summarise(folder).drop_points is not None) == is_found
