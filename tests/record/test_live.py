"""Live runs: the methods, what is kept of them, and that they are what they say."""

from dataclasses import fields, replace

import numpy as np
import pytest
from conftest import save_llada

from c4.errors import ConfigError, RunError
from c4.record import (
    LIVE,
    METHODS,
    LiveRow,
    Origin,
    RecordConfig,
    encode_table,
    find_live,
    find_runs,
    list_parts,
    load_planned,
    open_live,
    open_part,
    open_run,
    plan_recording,
    regrade,
    start_recording,
    summarise,
    summarise_live,
    write_part,
)
from c4.replay import MethodChoice, make_gate, plan_methods, replay
from c4.tasks import AnswerReading


@pytest.fixture
def config(random_llada, tmp_path):
    return RecordConfig(
        task="svamp", model=str(random_llada), source="embedded", n=3, skip=0, out=tmp_path / "runs"
    )


def run(config, method, *settings, recorded=False, label=None):
    """Carry a method out; returns its folder and the rows this session decoded."""
    choice = MethodChoice([method], settings, label=label)
    (plan,) = plan_methods(config, choice, recorded=recorded)
    with start_recording(plan) as recording:
        return plan.folder, list(recording)


def results(folder):
    """The rows without what a clock decides."""
    rows = open_live(folder).table().to_pylist()
    return [{k: v for k, v in row.items() if "seconds" not in k} for row in rows]


@pytest.mark.parametrize("task", ["mmlu", "svamp", "humaneval"])
@pytest.mark.parametrize("model", [None, "tiny"])
def test_with_both_gates_off_a_live_run_is_the_recording(config, task, model):
    config = replace(config, task=task, model=model or config.model, n=1, graded=False)
    plan = plan_recording(config)
    with start_recording(plan) as recording:
        recorded = list(recording)
    folder, live = run(config, "baseline", recorded=True)
    assert [row.final_ids for row in live] == [row.final_ids for row in recorded]
    for mine, theirs in zip(open_run(folder), open_run(plan.folder), strict=True):
        for spec in fields(mine.cells):
            np.testing.assert_array_equal(
                getattr(mine.cells, spec.name), getattr(theirs.cells, spec.name)
            )
        assert replace(mine.row, wall_seconds=0) == replace(theirs.row, wall_seconds=0)


@pytest.mark.parametrize("method", METHODS)
def test_every_method_accounts_for_every_position(config, method):
    folder, decoded = run(config, method)
    live = open_live(folder)
    assert (live.method, live.task, live.model) == (method, "svamp", "random-llada")
    rows = list(live.rows())
    assert [row.trajectory for row in rows] == [row.trajectory for row in decoded] == [0, 1, 2]
    allowed = {Origin.SCHEDULE, Origin.FILL} | {
        "cctc": {Origin.CORE, Origin.CONFIRMED, Origin.ACCEPTED},
        "schedule": set(),
    }.get(METHODS[method].rule, {Origin.ACCEPTED})
    for row in rows:
        assert len(row.block_passes) == len(row.block_seconds) == 8
        assert sum(row.block_passes) == row.forward_passes
        assert len(row.committed_by) == len(row.commit_step) == len(row.final_ids) == row.length
        assert set(row.committed_by) <= allowed
        assert max(row.commit_step) == row.forward_passes
        assert (row.exit_step is None) == (row.exit_reason == "full")
        assert row.exit_reason in ("full", METHODS[method].gate)
        assert (Origin.FILL in row.committed_by) <= (row.exit_step is not None)
        assert row.revoked == 0 or METHODS[method].rule == "wino"
        assert sum(row.block_seconds) <= row.wall_seconds


def test_the_embedded_model_runs_every_method_on_the_same_examples(config):
    config = replace(config, task="mmlu", model="tiny", n=1)
    plans = plan_methods(config, MethodChoice(list(METHODS)))
    model = load_planned(plans[0])
    steps = {}
    for plan in plans:
        with start_recording(plan, model) as recording:
            list(recording)
        (row,) = open_live(plan.folder).rows()
        steps[plan.method.label] = row.forward_passes
        if row.exit_step is None:
            assert min(row.block_passes) >= 1
    assert steps["baseline"] == plans[0].shape.steps
    assert max(steps.values()) == steps["baseline"]


def test_the_columns_of_results_are_frozen():
    assert [(f.name, str(f.type), f.nullable) for f in LIVE] == [
        ("trajectory", "int32", False),
        ("source_row", "int32", False),
        ("prompt", "string", False),
        ("target", "string", False),
        ("preamble", "string", False),
        ("tests", "string", False),
        ("choices", "list<item: string>", False),
        ("length", "int32", False),
        ("steps", "int32", False),
        ("block", "int32", False),
        ("forward_passes", "int32", False),
        ("block_passes", "list<item: int32>", False),
        ("block_seconds", "list<item: double>", False),
        ("exit_step", "int32", True),
        ("exit_reason", "string", False),
        ("committed_by", "list<item: uint8>", False),
        ("commit_step", "list<item: int32>", False),
        ("revoked", "int32", False),
        ("final_ids", "list<item: int32>", False),
        ("text", "string", False),
        ("answer", "string", True),
        ("correct", "bool", True),
        ("style", "string", True),
        ("ending", "string", True),
        ("tokens_before_end", "int32", False),
        ("wall_seconds", "double", False),
    ]
    assert {field.name for field in fields(LiveRow)} == set(LIVE.names)


def test_a_live_run_stands_apart_from_the_recordings(config):
    folder, _ = run(config, "c4", recorded=True)
    assert folder == config.out / "live" / "model=random-llada" / "task=svamp" / "method=c4"
    assert find_live(config.out) == [folder]
    assert find_runs(config.out) == []
    unrecorded, _ = run(config, "klass")
    for inside in (folder, folder.parent, folder.parents[1], folder.parents[2]):
        assert find_runs(inside) == [folder]
        assert find_live(inside) == [folder, unrecorded][: 1 if inside == folder else 2]
    identity = open_run(folder).manifest.identity
    assert identity["method"] == "c4"
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


def test_results_without_cells_are_no_recording_and_the_other_way_round(config):
    folder, _ = run(config, "c4")
    with pytest.raises(RunError, match="without its cells; run it with --record"):
        open_run(folder)
    plan = plan_recording(config)
    with start_recording(plan) as recording:
        list(recording)
    with pytest.raises(RunError, match="a recording, not a live run"):
        open_live(plan.folder)


@pytest.mark.parametrize("task", ["mmlu", "svamp"])
def test_a_gate_over_a_recorded_sampler_is_the_two_together(config, task):
    """Replaying CVEE over WINO's own steps gives what WINO + CVEE does live."""
    config = replace(config, task=task, model="tiny", n=3)
    loose = ("cvee.tau=0.1", "p_min=1", "gamma=0")
    alone, _ = run(config, "wino", recorded=True)
    both, _ = run(config, "wino+cvee", *loose, recorded=True)
    gate = make_gate("cvee", tau=0.1, p_min=1.0, gamma=0.0)
    (decisions,) = replay(open_run(alone), {"cvee": gate})
    live = list(open_live(both).rows())
    assert decisions["steps"].to_list() == [row.forward_passes for row in live]
    assert decisions["text"].to_list() == [row.text for row in live]
    assert decisions["fired"].to_list() == [row.exit_step is not None for row in live]
    assert sum(row.exit_step is not None for row in live) > 0
    for whole, cut in zip(open_run(alone), open_run(both), strict=True):
        steps = cut.row.forward_passes
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
            again = recording.decode_again(row, Never())
            assert again.ids.tolist() == row.final_ids
            assert again.steps == row.forward_passes < plan.shape.steps


def test_wino_takes_back_and_says_so(config):
    wide = replace(config, length=32, block=16)
    folder, _ = run(wide, "wino", "wino.tau=0.01", recorded=True)
    rows = list(open_live(folder).rows())
    assert sum(row.revoked for row in rows) > 0
    for row, trajectory in zip(rows, open_run(folder), strict=True):
        masked = trajectory.cells.masked
        assert row.revoked == (masked[1:] & ~masked[:-1]).sum()


def test_asking_again_decodes_nothing_and_asking_for_more_only_the_rest(config, tmp_path):
    run(replace(config, n=2), "c4")
    folder, rest = run(config, "c4")
    assert [row.trajectory for row in rest] == [2]
    assert run(config, "c4")[1] == []
    whole, _ = run(replace(config, out=tmp_path / "whole"), "c4")
    assert results(folder) == results(whole)


@pytest.mark.parametrize("recorded", [False, True])
def test_an_interrupted_run_goes_on(config, tmp_path, recorded):
    config = replace(config, n=5)
    (plan,) = plan_methods(config, MethodChoice(["c4"]), recorded=recorded)
    with start_recording(plan) as recording:
        for _ in recording:
            break
    before = open_live(plan.folder).table().num_rows
    assert 1 <= before < 5
    folder, rest = run(config, "c4", recorded=recorded)
    assert len(rest) == 5 - before
    whole, _ = run(replace(config, out=tmp_path / "whole"), "c4", recorded=recorded)
    assert results(folder) == results(whole)
    kinds = {"results", "cells", "trajectories"} if recorded else {"results"}
    assert {p.name for p in folder.iterdir() if p.is_dir() and any(p.iterdir())} == kinds


def test_another_setting_has_a_folder_of_its_own_and_another_seed_is_refused(config):
    plain, _ = run(config, "c4")
    changed, _ = run(config, "c4", "H=2")
    assert (plain.name, changed.name) == ("method=c4", "method=c4,H%3D2")
    assert open_live(changed).method == "c4,H=2"
    with pytest.raises(RunError, match="seed: 0 there, 1 here"):
        run(replace(config, seed=1), "c4")
    with pytest.raises(RunError, match="recorded: False there, True here"):
        run(config, "c4", recorded=True)


def test_a_code_task_s_results_are_graded_in_the_sandbox(config):
    folder, _ = run(replace(config, task="humaneval", n=1, unsafe_code=True), "fast-dllm")
    (row,) = open_live(folder).rows()
    assert row.correct is False


@pytest.mark.parametrize("recorded", [False, True])
@pytest.mark.parametrize("task", ["svamp", "humaneval"])
def test_what_was_not_graded_can_be_graded_later(config, tmp_path, task, recorded):
    config = replace(config, task=task, unsafe_code=True, n=2)
    folder, _ = run(replace(config, graded=False), "c4", recorded=recorded)
    assert [row.correct for row in open_live(folder).rows()] == [None, None]
    assert summarise_live(folder).accuracy is None
    assert len(list(regrade(folder, unsafe_code=True))) == 2
    assert list(regrade(folder, unsafe_code=True)) == []
    assert len(list(regrade(folder, unsafe_code=True, everything=True))) == 2
    at_once, _ = run(replace(config, out=tmp_path / "at once"), "c4", recorded=recorded)
    assert results(folder) == results(at_once)
    assert open_live(folder).table().schema == LIVE
    assert summarise(folder).graded == 2
    if recorded:
        assert [row.correct for row in open_run(folder).rows()] == [False, False]


def test_results_of_an_older_format_are_refused_in_words(config):
    folder, _ = run(config, "c4")
    (part,) = list_parts(folder / "results")
    table = open_part(part).read().drop_columns(["tests"])
    part.path.unlink()
    write_part(folder / "results", part.first, part.last, encode_table(table))
    with pytest.raises(RunError, match="columns of another c4; run it again with --fresh"):
        open_live(folder).table()


def test_the_summary_compares_with_the_baseline_of_the_same_examples(config):
    folder, _ = run(config, "c4")
    assert summarise_live(folder).drop is None
    baseline, _ = run(config, "baseline")
    summary = summarise_live(folder)
    assert summary.drop is not None
    rows = {row.trajectory: row for row in open_live(folder).rows()}
    base = {row.trajectory: row for row in open_live(baseline).rows()}
    same = [rows[i].answer == base[i].answer for i in rows]
    assert summary.identical == sum(same) / 3
    assert summary.steps == sum(row.forward_passes for row in rows.values()) / 3
    assert summary.saving == pytest.approx(1 - summary.steps / 24)
    assert summarise_live(folder, {1}).n == 1
    with pytest.raises(RunError, match="none of the examples"):
        summarise_live(folder, {77})


def test_a_baseline_of_another_seed_is_no_baseline(config):
    folder, _ = run(config, "c4")
    run(replace(config, seed=1), "baseline")
    assert summarise_live(folder).drop is None


def test_a_baseline_is_found_under_any_label(config):
    folder, _ = run(config, "c4")
    run(config, "baseline", label="whole")
    assert summarise_live(folder).drop is not None


def test_plain_readers_see_the_results_with_model_task_and_method(config):
    polars = pytest.importorskip("polars")
    duckdb = pytest.importorskip("duckdb")
    run(config, "c4")
    run(config, "c4", "H=2")
    pattern = str(config.out / "live" / "*" / "*" / "*" / "results" / "*.parquet")
    by_polars = polars.scan_parquet(pattern, hive_partitioning=True).collect()
    assert by_polars.height == 6
    assert set(by_polars["method"]) == {"c4", "c4,H=2"}
    assert set(by_polars["task"]) == {"svamp"}
    by_duckdb = duckdb.sql(
        f"select distinct method from read_parquet('{pattern}', hive_partitioning=true) order by 1"
    ).fetchall()
    assert by_duckdb == [("c4",), ("c4,H=2",)]
