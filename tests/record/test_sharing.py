"""Several workers on one run: nobody decodes what another does, and the bytes are those of one."""

import threading
from dataclasses import replace

import pytest

from c4.errors import RunError
from c4.record import recorder as record_module
from c4.record.plan import RunConfig, load_planned, plan_recording
from c4.record.recorder import start_recording
from c4.store import writer as writer_module
from c4.store.claims import Claims, Sign, mark_dead
from c4.store.manifest import read_manifest, write_manifest
from c4.store.runs import open_run
from tests.recordings import carry_out, contents


@pytest.fixture
def config(random_llada, tmp_path, monkeypatch):
    monkeypatch.setattr(writer_module, "CELLS_PER_PART", 2 * 24 * 24)
    model = str(random_llada)
    return RunConfig(
        task="gsm8k", model=model, source="embedded", n=7, skip=0, out=tmp_path / "runs"
    )


def record(config, model=None):
    return [row.trajectory for row in carry_out(plan_recording(config), model)]


def parts(folder):
    return [part.trajectories for part in open_run(folder).parts]


def in_threads(*jobs):
    results = [None] * len(jobs)

    def work(number):
        results[number] = jobs[number]()

    threads = [threading.Thread(target=work, args=(number,)) for number in range(len(jobs))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


@pytest.mark.parametrize("batch", [1, 2])
def test_workers_share_a_run_and_leave_what_one_would_have_left(config, tmp_path, batch):
    config = replace(config, batch=batch)
    alone = replace(config, out=tmp_path / "alone")
    record(alone)
    models = [load_planned(plan_recording(config)) for _ in range(3)]
    made = in_threads(*(lambda model=model: record(config, model) for model in models))
    assert sorted(number for numbers in made for number in numbers) == list(range(7))
    folder, other = plan_recording(config).folder, plan_recording(alone).folder
    assert contents(folder) == contents(other)
    assert parts(folder) == parts(other)
    assert {path.name for path in folder.iterdir()} == {
        *("manifest.json", "tokenizer.json", "rows", "cells", "pending"),
    }


def test_a_worker_waits_for_what_another_holds_and_takes_over_what_a_dead_one_held(config):
    plan = plan_recording(replace(config, n=3))
    other = Claims(plan.folder, Sign(process="", place="elsewhere"))
    other.report()
    other.take(["000001"])
    with start_recording(plan) as recording:
        rows = iter(recording)
        assert {next(rows).trajectory, next(rows).trajectory} == {0, 2}
        mark_dead(plan.folder, other.sign.worker, "lost its node")
        assert [row.trajectory for row in rows] == [1]
    assert not (plan.folder / "claims").exists()
    assert not (plan.folder / "workers").exists()


def test_what_a_worker_fails_at_is_tried_last_and_set_aside_after_three(config, monkeypatch):
    plan = plan_recording(replace(config, n=4))
    real = record_module.decode

    def fail_at_first(predictor, prompt, *args, **kwargs):
        if len(prompt) == len(first):
            raise ValueError("not a number")
        return real(predictor, prompt, *args, **kwargs)

    with start_recording(plan) as recording:
        first = recording._prompts[0]
        monkeypatch.setattr(record_module, "decode", fail_at_first)
        with pytest.raises(ValueError, match="not a number"):
            list(recording)
    assert 0 not in open_run(plan.folder).indices
    for _ in range(2):
        with pytest.raises(ValueError, match="not a number"):
            record(plan.config)
    with start_recording(plan, sign=Sign(engine="test")) as recording:
        assert list(recording) == []
    assert open_run(plan.folder).indices == [1, 2, 3]
    assert "ValueError: not a number" in record_module.set_aside(plan)[0]
    with pytest.raises(ValueError, match="not a number"):
        record(plan.config)  # a new command tries it again
    assert record_module.set_aside(plan) == {}


def test_other_libraries_or_another_gpu_need_a_word(config):
    record(replace(config, n=2))
    folder = plan_recording(config).folder
    manifest = read_manifest(folder)
    before = dict(manifest.environment)
    before |= {"gpu": "A100", "libraries": before["libraries"] | {"torch": "1.0"}}
    write_manifest(folder, replace(manifest, environment=before))
    differ = r"GPU: A100 there, None here\n  torch: 1\.0 there.*\n.*--mixed"
    with pytest.raises(RunError, match=differ):
        record(config)
    assert record(replace(config, mixed=True)) == [2, 3, 4, 5, 6]


def test_the_first_worker_settles_the_batch_for_all(config, monkeypatch):
    """Two that begin at once may find that different numbers fit their devices."""
    record(replace(config, n=2, batch=2))
    answers = iter([3])
    real = record_module.settle_batch

    def settle(plan, model):
        number = next(answers, None)
        return real(plan, model) if number is None else replace(plan, batch=number)

    monkeypatch.setattr(record_module, "settle_batch", settle)
    assert record(replace(config, batch=None)) == [2, 3, 4, 5, 6]
    folder = plan_recording(replace(config, batch=None)).folder
    assert read_manifest(folder).identity["batch"] == 2
