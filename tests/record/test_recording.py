"""A recording from configuration to arrays, on a random checkpoint."""

import json
from dataclasses import replace

import numpy as np
import pyarrow.dataset as ds
import pytest

from c4.decode.loop import decode
from c4.errors import ConfigError, RunError, SandboxError
from c4.models import find_checkpoint, load_model
from c4.record import plan as plan_module
from c4.record import recorder as record_module
from c4.record.plan import RunConfig, plan_recording
from c4.record.recorder import start_recording
from c4.record.regrade import regrade
from c4.store.cells import SIGNALS
from c4.store.manifest import read_manifest, write_manifest
from c4.store.runs import find_runs, open_run
from c4.store.summary import summarise
from c4.tasks import TASKS, Ending, Family, grade


@pytest.fixture
def config(random_llada, tmp_path):
    return RunConfig(
        task="gsm8k", model=str(random_llada), source="embedded", n=5, skip=0, out=tmp_path / "runs"
    )


def record_all(config):
    plan = plan_recording(config)
    with start_recording(plan) as recording:
        return plan, list(recording)


def timeless(row):
    """A row without what a clock decides."""
    return replace(row, wall_seconds=0, block_seconds=[])


def everything(folder):
    """Trajectories and cells, but for the time they took."""
    return [
        (timeless(t.row), [getattr(t.cells, name).tolist() for name in SIGNALS])
        for t in open_run(folder)
    ]


def test_a_recording_is_the_decode_it_records(config):
    plan, rows = record_all(config)
    run = open_run(plan.folder)
    model = load_model(find_checkpoint(config.model))
    assert [row.trajectory for row in rows] == run.indices == [0, 1, 2, 3, 4]
    for trajectory, sample in zip(run, plan.sample_set.samples, strict=True):
        row, cells = trajectory.row, trajectory.cells
        assert row.prompt_ids == model.encode_prompt(sample.example.prompt)
        assert row.prompt == sample.example.prompt
        decoded = decode(model.denoiser, np.array(row.prompt_ids), plan.shape)
        assert row.final_ids == decoded.ids.tolist()
        assert cells.shape == (row.steps, row.length) == (24, 24)
        last_masked = cells.masked.sum(axis=0) - 1
        assert cells.token[last_masked, np.arange(24)].tolist() == row.final_ids
        given = grade(TASKS["gsm8k"], row.example, row.text)
        assert (row.answer, row.correct) == (given.answer, given.correct)
        assert run.vocabulary.text(row.final_ids, Ending.CUT) == row.text


def test_the_manifest_says_everything_that_made_the_run(config):
    plan, _ = record_all(config)
    manifest = json.loads((plan.folder / "manifest.json").read_text())
    identity = manifest["identity"]
    assert identity["source"] == "embedded"
    assert identity["shape"] == {"length": 24, "budget": 24, "block_length": 3}
    assert (identity["mask_id"], identity["end_ids"], identity["shift"]) == (257, [256], False)
    assert len(identity["weights_sha256"]) == len(identity["tokenizer_sha256"]) == 64
    assert identity["seed"] == 0
    assert manifest["schema_version"] == 3
    assert identity["resolution"]["confidence"] == 2.0**-14
    assert identity["origin"].startswith("embedded:")
    assert (identity["method"], identity["label"]) == ("baseline", "baseline")
    assert (identity["rule"], identity["gate"]) == ({"name": "schedule"}, None)
    assert (identity["cells"], identity["batch"]) == (True, 1)
    assert plan.folder == config.out / "model=random-llada" / "task=gsm8k" / "method=baseline"
    assert {"torch", "pyarrow", "c4-dlm"} <= manifest["environment"]["libraries"].keys()


def test_a_session_iterated_twice_decodes_once(config):
    plan = plan_recording(config)
    with start_recording(plan) as recording:
        assert (len(recording), len(list(recording)), len(list(recording))) == (5, 5, 0)
    assert len(open_run(plan.folder)) == 5


def test_a_full_disk_while_sealing_is_explained_too(config, monkeypatch):
    def full(self, part, claim):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(record_module.RunWriter, "seal_part", full)
    with pytest.raises(RunError, match="the disk is full"):
        record_all(config)


def test_a_decode_survives_a_kill_while_its_program_runs(config, monkeypatch):
    """Code is safe on disk before it is graded, and graded when the recording goes on."""
    code = replace(config, task="humaneval", n=2, unsafe_code=True)

    def killed(*args, **kwargs):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(record_module, "grade", killed)
        with pytest.raises(KeyboardInterrupt):
            record_all(code)
    folder = plan_recording(code).folder
    assert next(open_run(folder).rows()).correct is None
    record_all(code)
    assert [row.correct for row in open_run(folder).rows()] == [False, False]
    assert list((folder / "pending").iterdir()) == []


def test_sealing_decodes_cells_only_where_a_grade_is_missing(config, monkeypatch):
    read = []
    monkeypatch.setattr(record_module.RunWriter, "read_pending", lambda _, part: read.append(part))
    plan, _ = record_all(config)
    assert read == []
    assert list((plan.folder / "pending").iterdir()) == []


def test_a_prompt_that_does_not_fit_is_refused_before_decoding(config, tmp_path):
    from conftest import save_llada

    short = save_llada(tmp_path / "short", max_sequence_length=40)
    with pytest.raises(ConfigError, match="prompt and generation together; short has 40"):
        record_all(replace(config, model=str(short)))


def test_a_run_of_unknown_programs_goes_on_without_a_warning(config, caplog):
    """A manifest that was rebuilt from parts that do not name them."""
    plan = plan_recording(config)
    with start_recording(plan) as recording:
        list(recording)
    write_manifest(plan.folder, replace(read_manifest(plan.folder), environment={}))
    with start_recording(plan) as recording:
        assert len(recording) == 0
    assert "the run was begun with" not in caplog.text


def test_asking_for_more_decodes_only_the_rest(config, tmp_path):
    record_all(replace(config, n=2))
    plan, rest = record_all(config)
    assert [row.trajectory for row in rest] == [2, 3, 4]
    assert record_all(config)[1] == []
    whole, _ = record_all(replace(config, out=tmp_path / "whole"))
    assert everything(plan.folder) == everything(whole.folder)


def test_pool_and_evaluation_share_a_run_and_never_an_example(config):
    record_all(replace(config, n=2, skip=0))
    plan, _ = record_all(replace(config, n=2, skip=2))
    run = open_run(plan.folder)
    assert run.indices == [0, 1, 2, 3]
    assert len({row.source_row for row in run.rows()}) == 4


def interrupt_after(plan, trajectory):
    with start_recording(plan) as recording:
        for row in recording:
            if row.trajectory == trajectory:
                raise KeyboardInterrupt


def test_an_interrupted_recording_goes_on_to_the_same_bytes(config, tmp_path):
    plan = plan_recording(config)
    with pytest.raises(KeyboardInterrupt):
        interrupt_after(plan, trajectory=1)
    safe = open_run(plan.folder).indices
    assert {0, 1} <= set(safe) < set(range(5))
    _, rest = record_all(config)
    assert [row.trajectory for row in rest] == [i for i in range(5) if i not in safe]
    whole, _ = record_all(replace(config, out=tmp_path / "whole"))
    assert everything(plan.folder) == everything(whole.folder)
    names = [sorted(p.name for p in (w.folder / "cells").iterdir()) for w in (plan, whole)]
    assert names[0] == names[1]  # a name holds the checksum of the bytes


def test_a_full_disk_says_what_to_do_and_loses_nothing(config, monkeypatch):
    plan = plan_recording(config)
    real, calls = record_module.RunWriter.add, []

    def fill_up(self, row, cells):
        calls.append(row)
        if len(calls) > 2:
            raise OSError(28, "No space left on device")
        real(self, row, cells)

    with monkeypatch.context() as patch:
        patch.setattr(record_module.RunWriter, "add", fill_up)
        with (
            pytest.raises(RunError, match=r"the disk is full; .* give the same command again"),
            start_recording(plan) as recording,
        ):
            list(recording)
    assert open_run(plan.folder).indices == [0, 1]
    _, rest = record_all(config)
    assert [row.trajectory for row in rest] == [2, 3, 4]


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"seed": 1}, "seed: 0 there, 1 here"),
        ({"budget": 8}, "shape: budget: 24 there, 8 here\n"),
        ({"source": "rows.jsonl"}, "there, 'file:rows.jsonl@"),
    ],
)
def test_another_identity_is_refused_before_the_model_loads(config, change, named, tmp_path):
    rows = tmp_path / "rows.jsonl"
    rows.write_text("\n".join(['{"question": "How many?", "answer": "#### 3"}'] * 5))
    if "source" in change:
        change = {"source": str(rows)}
    record_all(config)
    with pytest.raises(RunError, match="recorded with different settings") as caught:
        plan_recording(replace(config, **change))
    assert named in str(caught.value)
    plan, fresh = record_all(replace(config, **change, fresh=True))
    assert len(fresh) == 5
    assert len(open_run(plan.folder)) == 5


def test_a_recording_in_another_order_of_examples_is_not_continued(config, monkeypatch):
    with monkeypatch.context() as patched:
        patched.setattr(plan_module, "ORDER", "as they come")
        record_all(config)
    with pytest.raises(RunError, match=r"order: 'as they come' there, 'numpy\.random\.default"):
        plan_recording(config)


def test_other_weights_under_the_same_name_are_refused(config, tmp_path):
    from conftest import save_llada

    folder = save_llada(tmp_path / "model", seed=0)
    record_all(replace(config, model=str(folder), n=1))
    save_llada(folder, seed=1)
    with pytest.raises(RunError, match="weights_sha256: "):
        record_all(replace(config, model=str(folder), n=2))


def test_other_problems_under_the_same_numbers_are_refused(config):
    plan, _ = record_all(replace(config, n=2))
    sample = plan.sample_set.samples[1]
    other = replace(sample, example=replace(sample.example, prompt="Q: What else?"))
    changed = replace(plan.sample_set, samples=[plan.sample_set.samples[0], other])
    with (
        pytest.raises(RunError, match="example 1 was recorded with another prompt"),
        start_recording(replace(plan, sample_set=changed)),
    ):
        pass
    assert len(open_run(plan.folder)) == 2


def test_a_shape_that_cannot_be_meant_is_refused_before_the_model_loads(config, monkeypatch):
    monkeypatch.setattr("c4.models._load.load_model", None)
    with pytest.raises(ConfigError, match="30 is not a multiple of block length 8"):
        plan_recording(replace(config, length=30, block_length=8))


def test_the_user_s_numbers_come_before_the_model_s_and_those_before_the_paper_s(
    config, random_llada
):
    checkpoint = find_checkpoint(str(random_llada))
    task = TASKS["gsm8k"]
    resolve = plan_module.resolve_shape
    assert resolve(config, task, checkpoint).length == 24
    assert resolve(replace(config, length=48), task, checkpoint).length == 48
    bare = replace(checkpoint, config={})
    assert resolve(config, task, bare) == task.shape


def test_code_is_not_graded_where_it_cannot_be_isolated(config, monkeypatch):
    def refuse():
        raise SandboxError("no isolation here; accept the risk with --unsafe-code")

    monkeypatch.setattr("c4.tasks.grading.require_isolation", refuse)
    with pytest.raises(SandboxError, match="--unsafe-code"):
        plan_recording(replace(config, task="humaneval"))
    plan, rows = record_all(replace(config, task="humaneval", n=1, graded=False))
    assert (rows[0].answer, rows[0].correct) == (None, None)
    assert summarise(plan.folder).accuracy is None


def test_an_interrupted_grading_keeps_what_it_gave(config):
    plan, _ = record_all(replace(config, graded=False))
    grading = regrade(plan.folder)
    next(grading), next(grading)
    grading.close()
    assert summarise(plan.folder).graded == 2
    assert len(list(regrade(plan.folder))) == 3


def test_asking_for_grades_of_what_has_none_says_how_to_get_them(config, caplog):
    plan, _ = record_all(replace(config, graded=False, n=2))
    record_all(replace(config, graded=False, n=2))
    assert "c4 grade" not in caplog.text
    record_all(config)
    assert f"2 examples were made with --no-grade; grade them with: c4 grade '{plan.folder}'" in (
        caplog.text
    )
    list(regrade(plan.folder))
    caplog.clear()
    record_all(config)
    assert "c4 grade" not in caplog.text


@pytest.mark.parametrize("task", [name for name, t in TASKS.items() if t.family is not Family.CODE])
def test_every_task_can_be_recorded_from_the_embedded_problems(config, task):
    plan, rows = record_all(replace(config, task=task, n=1))
    assert len(rows) == 1
    assert find_runs(config.out) == [plan.folder]


def test_plain_readers_see_the_cells_with_model_task_and_method(config):
    polars = pytest.importorskip("polars")
    duckdb = pytest.importorskip("duckdb")
    plan, _ = record_all(config)
    pattern = str(config.out / "*" / "*" / "*" / "cells" / "*.parquet")
    by_polars = polars.scan_parquet(pattern, hive_partitioning=True).collect()
    by_arrow = ds.dataset(
        sorted(map(str, config.out.rglob("cells/*.parquet"))), format="parquet"
    ).to_table()
    by_duckdb = duckdb.sql(
        f"select count(*), any_value(model), any_value(task), any_value(method), "
        f"sum(confidence::double) "
        f"from read_parquet('{pattern}', hive_partitioning=true)"
    ).fetchall()[0]
    cells = [t.cells for t in open_run(plan.folder)]
    total = sum(c.confidence.sum(dtype=np.float64) for c in cells)
    assert by_polars.height == by_arrow.num_rows == by_duckdb[0] == 5 * 24 * 24
    assert set(by_polars["model"]) == {by_duckdb[1]} == {"random-llada"}
    assert set(by_polars["task"]) == {by_duckdb[2]} == {"gsm8k"}
    assert set(by_polars["method"]) == {by_duckdb[3]} == {"baseline"}
    assert by_duckdb[4] == pytest.approx(total)
    third = by_polars.filter(polars.col("trajectory") == 2).sort("step", "position")
    np.testing.assert_array_equal(third["token"].to_numpy().reshape(24, 24), cells[2].token)


def test_the_hub_s_library_reads_the_cells(config, tmp_path):
    datasets = pytest.importorskip("datasets")
    record_all(config)
    rows = datasets.load_dataset(
        "parquet",
        data_files=str(config.out / "*" / "*" / "*" / "cells" / "*.parquet"),
        split="train",
        cache_dir=str(tmp_path / "cache"),
    )
    assert len(rows) == 5 * 24 * 24
    assert rows.column_names[0] == "trajectory"
