"""Runs that are decoded in batches: what they hold depends on the batch's size and nothing else."""

import json
from dataclasses import replace

import pytest
from conftest import save_llada

from c4.errors import ConfigError, ModelError, RunError
from c4.gates.registry import make_gate
from c4.models.batch import BatchDenoiser, padded
from c4.record.bench import Bench, TimingProtocol
from c4.record.methods import METHODS
from c4.record.plan import RunConfig, load_planned, plan_decode, plan_methods, plan_recording
from c4.record.recorder import Waiting, start_recording
from c4.record.settings import MethodChoice
from c4.replay.verify import FULL, compare_batches, verify
from c4.store.runs import open_run
from c4.store.writer import RunWriter
from tests.commands import c4, done
from tests.recordings import carry_out, contents, record


@pytest.fixture
def config(random_llada, tmp_path):
    return RunConfig(
        task="gsm8k",
        model=str(random_llada),
        source="embedded",
        n=7,
        skip=0,
        batch=3,
        graded=False,
        out=tmp_path / "runs",
    )


def cell_files(folder):
    """Names, which hold a checksum of the bytes."""
    return sorted(path.name for path in (folder / "cells").iterdir())


def test_a_run_has_the_same_bytes_whoever_shared_its_batches(config, tmp_path):
    """Two sessions put other examples side by side, and in other places, than one does."""
    whole, rows = record(replace(config, out=tmp_path / "whole"))
    assert len({padded(len(row.prompt_ids)) for row in rows}) > 1
    assert open_run(whole).manifest.identity["batch"] == 3
    expected, expected_cells = contents(whole)
    for first in (1, 5):
        out = tmp_path / f"after {first}"
        record(replace(config, n=first, skip=7 - first, out=out))
        assert contents(record(replace(config, out=out))[0]) == (expected, expected_cells)
    seen, cells = contents(record(replace(config, n=1, skip=2, out=tmp_path / "one"))[0])
    assert (seen[2], cells[2]) == (expected[2], expected_cells[2])


def test_an_interrupted_batch_goes_on_to_the_same_bytes(config, tmp_path):
    plan = plan_recording(config)
    with start_recording(plan) as recording:
        for _ in recording:
            break
    assert 1 <= len(open_run(plan.folder)) < 7
    folder, _ = record(config)
    whole, _ = record(replace(config, out=tmp_path / "whole"))
    assert contents(folder) == contents(whole)
    assert cell_files(folder) == cell_files(whole)
    assert list((folder / "pending").iterdir()) == []


def test_an_interrupt_in_a_pass_loses_nothing_that_was_finished(config, monkeypatch):
    plan, real, calls = plan_recording(config), BatchDenoiser.logits, []

    def interrupted(self, requests):
        calls.append(requests)
        if len(calls) > 30:  # the first batch is done, and the next under way
            raise KeyboardInterrupt
        return real(self, requests)

    monkeypatch.setattr(BatchDenoiser, "logits", interrupted)
    with pytest.raises(KeyboardInterrupt):
        carry_out(plan)
    assert len(open_run(plan.folder)) == 3


def test_an_example_that_fails_takes_no_other_with_it(config, monkeypatch):
    plan, real = plan_recording(config), BatchDenoiser.logits
    with start_recording(plan) as recording:
        bad = recording._prompts[1].tolist()

    def fail(self, requests):
        def broken(request):
            return request is not None and request.ids[: request.start].tolist() == bad

        answers = real(self, requests)
        return [
            a * float("nan") if broken(r) else a for r, a in zip(requests, answers, strict=True)
        ]

    monkeypatch.setattr(BatchDenoiser, "logits", fail)
    with pytest.raises(ModelError, match="is not a number"):
        carry_out(plan)
    assert len(open_run(plan.folder)) == 2  # those that were under way beside it
    assert 1 not in open_run(plan.folder).indices


@pytest.mark.parametrize("method", METHODS)
def test_every_method_decodes_in_batches_what_it_does_in_an_empty_one(config, method):
    """Run beside others, and again beside dummies: same steps, same tokens."""

    class Never:
        def fires(self, view):
            return False

    (plan,) = plan_methods(replace(config, n=4), MethodChoice([method]))
    with start_recording(plan) as recording:
        for row in list(recording):
            assert (row.length, len(row.final_ids)) == (24, 24)
            if plan.method.gate_name is None:
                assert recording.decode_again(row, Never()).decode == row.decode


def test_what_is_replayed_is_what_a_live_batch_does(config):
    plan = plan_recording(replace(config, n=3))
    gates = {name: make_gate(name, plan.task.family) for name in ("cvee", "prophet", "stability")}
    with start_recording(plan) as recording:
        list(recording)
        checks = list(verify(open_run(plan.folder), gates, recording.decode_again))
    assert len(checks) == 9
    assert all(check.agrees for check in checks)


def test_another_batch_is_another_run(config):
    record(replace(config, n=2))
    with pytest.raises(RunError, match="batch: 3 there, 1 here"):
        plan_recording(replace(config, batch=1))


def test_a_batch_that_is_left_open_is_the_recorded_one(config):
    record(replace(config, n=2))
    assert plan_recording(replace(config, batch=None)).batch == 3
    folder, _ = record(replace(config, n=3, batch=None))
    assert len(open_run(folder)) == 3
    assert plan_recording(replace(config, batch=None, fresh=True)).batch is None


def test_methods_take_the_baseline_s_batch_where_none_is_given(config):
    auto = replace(config, batch=None, n=2)
    (unsettled,) = plan_methods(auto, MethodChoice(["c4"]))
    assert unsettled.batch is None
    assert "batch" not in unsettled.identity
    record(replace(config, n=2))
    (plan,) = plan_methods(auto, MethodChoice(["c4"]))
    assert plan.batch == 3
    (other,) = plan_methods(replace(auto, seed=1), MethodChoice(["c4"]))
    assert other.batch is None  # not to be compared with it anyway


def test_auto_is_settled_when_the_model_is_there(config, monkeypatch):
    asked = {}

    def find(denoiser, **given):
        asked.update(given)
        return 4

    monkeypatch.setattr("c4.models.batch.find_batch", find)
    folder, rows = record(replace(config, batch=None))
    assert open_run(folder).manifest.identity["batch"] == 4
    longest = max(len(row.prompt_ids) for row in rows)
    assert asked == {"prompt": padded(longest), "length": 24 + 3, "most": 7}
    monkeypatch.setattr("c4.models.batch.find_batch", None)
    assert len(record(replace(config, batch=None, n=8))[1]) == 1


@pytest.mark.parametrize("batch", [2, None])
@pytest.mark.parametrize("cache", ["prefix", "dual"])
def test_a_cache_is_refused_before_the_model_loads(config, monkeypatch, batch, cache):
    monkeypatch.setattr("c4.models._load.load_model", None)
    choice = MethodChoice(["fast-dllm"], [f"forward.cache={cache}"])
    with pytest.raises(ConfigError, match=rf"forward\.cache={cache}.*give --batch 1"):
        plan_methods(replace(config, batch=batch), choice)
    assert plan_methods(replace(config, batch=1), choice)


def test_a_masked_language_model_of_another_kind_is_refused(config, tmp_path):
    (tmp_path / "bert").mkdir()
    (tmp_path / "bert" / "config.json").write_text(json.dumps({"model_type": "bert"}))
    other = replace(config, model=str(tmp_path / "bert"), length=24, block_length=8)
    with pytest.raises(ConfigError, match="masked language model of type bert"):
        plan_recording(other)
    assert plan_recording(replace(other, batch=1))


def test_a_batch_is_a_number_from_one_on(config):
    with pytest.raises(ConfigError, match="--batch is at least 1, not 0"):
        plan_recording(replace(config, batch=0))


def test_timing_is_done_one_example_at_a_time(config):
    plan = plan_decode(replace(config, task="mmlu", n=3))
    with pytest.raises(ConfigError, match="timed one example at a time"):
        Bench(plan, [], load_planned(plan), TimingProtocol(n=1, warmups=2, passes=1))
    result = c4("bench", "--method", "c4", "--task", "mmlu", "--batch", 2)
    assert result.exit_code == 2
    assert "No such option: --batch" in result.stderr


def test_waiting_examples_are_taken_in_order_or_by_padded_length(config, tmp_path):
    samples = plan_recording(config).sample_set.samples[:4]
    prompts = {0: [0] * 40, 1: [0] * 70, 2: [0] * 64, 3: [0] * 80}
    with RunWriter(tmp_path) as writer:
        waiting = Waiting(samples, prompts, writer)
        assert waiting.take(96).index == 1
        assert waiting.take().index == 0
        assert waiting.take(128) is None
        assert [waiting.take().index, waiting.take().index, waiting.take()] == [2, 3, None]


def test_differences_are_counted_by_gate(config, tmp_path):
    gates = {"cvee": make_gate("cvee", "long_reasoning", tau=0.001, gamma=0, p_min=1)}
    one = open_run(record(config)[0])
    assert [
        (row.gate, row.batch, row.n, row.other_tokens, row.other_exits, row.other_answers)
        for row in compare_batches(one, one, gates)
    ] == [(FULL, 3, 7, 0, 0, 0), ("cvee", 3, 7, 0, 0, 0)]
    other = save_llada(tmp_path / "other" / "random-llada", seed=1)
    changed = replace(config, model=str(other), out=tmp_path / "different")
    different = open_run(record(changed)[0])
    full, _ = compare_batches(one, different, gates)
    assert (full.other_tokens, full.other_exits) == (7, 0)
    few = open_run(record(replace(config, n=2, out=tmp_path / "few"))[0])
    with pytest.raises(RunError, match="do not hold the same examples"):
        compare_batches(one, few, gates)


def test_verify_compares_together_with_alone(random_llada):
    model = ["--model", random_llada, "--source", "embedded"]
    asked = ["--task", "mmlu", "--n", 2, "--gate", "cvee", "--batch", 2, "--json"]
    rows = json.loads(done("verify", *model, *asked).stdout)
    assert [(row["task"], row["gate"]) for row in rows] == [("mmlu", FULL), ("mmlu", "cvee")]
    assert {(row["batch"], row["n"]) for row in rows} == {(2, 2)}


@pytest.mark.parametrize("batch", ["0", "1.5", "²", "9" * 5000])
def test_what_is_no_batch_is_refused(batch):
    result = c4("record", "--task", "mmlu", "--batch", batch)
    assert result.exit_code == 2
    assert "give a number of examples from 1 on, or auto" in result.stderr
