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
from c4.store.manifest import read_manifest, write_manifest
from c4.store.runs import find_runs, open_run
from c4.store.summary import summarise
from c4.tasks import TASKS, Ending, Family, grade
from tests.recordings import carry_out, contents, record


@pytest.fixture
def config(random_llada, tmp_path):
    return RunConfig(
        task="gsm8k", model=str(random_llada), source="embedded", n=5, skip=0, out=tmp_path / "runs"
    )


@pytest.fixture(scope="module")
def recorded(random_llada, tmp_path_factory):
    """A recording that nobody changes: its plan, and the rows of the session that made it."""
    out = tmp_path_factory.mktemp("recorded") / "runs"
    model = str(random_llada)
    config = RunConfig(task="gsm8k", model=model, source="embedded", n=5, skip=0, out=out)
    plan = plan_recording(config)
    return plan, carry_out(plan)


def test_a_recording_is_the_decode_it_records(recorded):
    plan, rows = recorded
    config, run = plan.config, open_run(plan.folder)
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


def test_the_manifest_says_everything_that_made_the_run(recorded):
    plan, _ = recorded
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
    assert plan.folder == plan.config.out / "model=random-llada" / "task=gsm8k" / "method=baseline"
    assert {"torch", "pyarrow", "c4-dlm"} <= manifest["environment"]["libraries"].keys()


def test_a_session_iterated_twice_decodes_once(config):
    plan = plan_recording(config)
    with start_recording(plan) as recording:
        assert (len(recording), len(list(recording)), len(list(recording))) == (5, 5, 0)
    assert len(open_run(plan.folder)) == 5


def test_a_decode_survives_a_kill_while_its_program_runs(config, monkeypatch):
    """Code is safe on disk before it is graded, and graded when the recording goes on."""
    code = replace(config, task="humaneval", n=2, unsafe_code=True)

    def killed(*args, **kwargs):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(record_module, "grade", killed)
        with pytest.raises(KeyboardInterrupt):
            record(code)
    folder = plan_recording(code).folder
    assert next(open_run(folder).rows()).correct is None
    record(code)
    assert [row.correct for row in open_run(folder).rows()] == [False, False]
    assert list((folder / "pending").iterdir()) == []


def test_sealing_decodes_cells_only_where_a_grade_is_missing(config, monkeypatch):
    read = []
    monkeypatch.setattr(record_module.RunWriter, "read_pending", lambda _, part: read.append(part))
    folder, _ = record(config)
    assert read == []
    assert list((folder / "pending").iterdir()) == []


def test_a_prompt_that_does_not_fit_is_refused_before_decoding(config, tmp_path):
    from conftest import save_llada

    short = save_llada(tmp_path / "short", max_sequence_length=40)
    with pytest.raises(ConfigError, match="prompt and generation together; short has 40"):
        record(replace(config, model=str(short)))


def test_a_run_of_unknown_programs_goes_on_without_a_warning(config, caplog):
    """A manifest that was rebuilt from parts that do not name them."""
    plan = plan_recording(config)
    carry_out(plan)
    write_manifest(plan.folder, replace(read_manifest(plan.folder), environment={}))
    with start_recording(plan) as recording:
        assert len(recording) == 0
    assert "the run was begun with" not in caplog.text


def test_asking_for_more_decodes_only_the_rest(config, recorded):
    record(replace(config, n=2))
    folder, rest = record(config)
    assert [row.trajectory for row in rest] == [2, 3, 4]
    assert record(config)[1] == []
    assert contents(folder) == contents(recorded[0].folder)


def test_pool_and_evaluation_share_a_run_and_never_an_example(config):
    record(replace(config, n=2, skip=0))
    folder, _ = record(replace(config, n=2, skip=2))
    run = open_run(folder)
    assert run.indices == [0, 1, 2, 3]
    assert len({row.source_row for row in run.rows()}) == 4


def test_an_interrupted_recording_goes_on_to_the_same_bytes(config, recorded):
    plan = plan_recording(config)
    with start_recording(plan) as recording:
        for row in recording:
            if row.trajectory == 1:
                break
    safe = open_run(plan.folder).indices
    assert {0, 1} <= set(safe) < set(range(5))
    _, rest = record(config)
    assert [row.trajectory for row in rest] == [i for i in range(5) if i not in safe]
    assert contents(plan.folder) == contents(recorded[0].folder)
    names = [sorted(p.name for p in (w.folder / "cells").iterdir()) for w in (plan, recorded[0])]
    assert names[0] == names[1]  # a name holds the checksum of the bytes


@pytest.mark.parametrize(("step", "fits", "safe"), [("add", 2, 2), ("seal_part", 0, 5)])
def test_a_full_disk_says_what_to_do_and_loses_nothing(config, monkeypatch, step, fits, safe):
    real, calls = getattr(record_module.RunWriter, step), []

    def fill_up(*given):
        calls.append(given)
        if len(calls) > fits:
            raise OSError(28, "No space left on device")
        return real(*given)

    with monkeypatch.context() as patch:
        patch.setattr(record_module.RunWriter, step, fill_up)
        with pytest.raises(RunError, match=r"the disk is full; .* give the same command again"):
            record(config)
    _, rest = record(config)
    assert [row.trajectory for row in rest] == list(range(safe, 5))
    assert open_run(plan_recording(config).folder).indices == list(range(5))


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
    rows.write_text("\n".join(['{"question": "How many?", "answer": "#### 3"}'] * 2))
    if "source" in change:
        change = {"source": str(rows)}
    config = replace(config, n=2)
    record(config)
    with pytest.raises(RunError, match="recorded with different settings") as caught:
        plan_recording(replace(config, **change))
    assert named in str(caught.value)
    folder, fresh = record(replace(config, **change, fresh=True))
    assert len(fresh) == len(open_run(folder)) == 2


def test_a_recording_in_another_order_of_examples_is_not_continued(config, monkeypatch):
    with monkeypatch.context() as patched:
        patched.setattr(plan_module, "ORDER", "as they come")
        record(config)
    with pytest.raises(RunError, match=r"order: 'as they come' there, 'numpy\.random\.default"):
        plan_recording(config)


def test_other_weights_under_the_same_name_are_refused(config, tmp_path):
    from conftest import save_llada

    folder = save_llada(tmp_path / "model", seed=0)
    record(replace(config, model=str(folder), n=1))
    save_llada(folder, seed=1)
    with pytest.raises(RunError, match="weights_sha256: "):
        record(replace(config, model=str(folder), n=2))


def test_other_problems_under_the_same_numbers_are_refused(config):
    plan = plan_recording(replace(config, n=2))
    carry_out(plan)
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
    folder, (row,) = record(replace(config, task="humaneval", n=1, graded=False))
    assert (row.answer, row.correct) == (None, None)
    assert summarise(folder).accuracy is None


def test_an_interrupted_grading_keeps_what_it_gave(config):
    folder, _ = record(replace(config, graded=False, n=3))
    grading = regrade(folder)
    next(grading), next(grading)
    grading.close()
    assert summarise(folder).graded == 2
    assert len(list(regrade(folder))) == 1


def test_asking_for_grades_of_what_has_none_says_how_to_get_them(config, caplog):
    folder, _ = record(replace(config, graded=False, n=2))
    record(replace(config, graded=False, n=2))
    assert "c4 grade" not in caplog.text
    record(config)
    said = f"2 examples were made with --no-grade; grade them with: c4 grade '{folder}'"
    assert said in caplog.text
    list(regrade(folder))
    caplog.clear()
    record(config)
    assert "c4 grade" not in caplog.text


@pytest.mark.parametrize("task", [name for name, t in TASKS.items() if t.family is not Family.CODE])
def test_every_task_can_be_recorded_from_the_embedded_problems(config, task):
    folder, rows = record(replace(config, task=task, n=1))
    assert len(rows) == 1
    assert find_runs(config.out) == [folder]


def test_plain_readers_see_the_cells_with_model_task_and_method(recorded):
    polars = pytest.importorskip("polars")
    duckdb = pytest.importorskip("duckdb")
    plan, _ = recorded
    pattern = str(plan.config.out / "*" / "*" / "*" / "cells" / "*.parquet")
    by_polars = polars.scan_parquet(pattern, hive_partitioning=True).collect()
    files = sorted(map(str, plan.config.out.rglob("cells/*.parquet")))
    by_arrow = ds.dataset(files, format="parquet").to_table()
    by_duckdb = duckdb.sql(
        f"select count(*), any_value(model), any_value(task), any_value(method), "
        f"sum(confidence::double) "
        f"from read_parquet('{pattern}', hive_partitioning=true)"
    ).fetchall()[0]
    cells = [t.cells for t in open_run(plan.folder)]
    total = sum(c.confidence.sum(dtype=np.float64) for c in cells)
    assert by_polars.height == by_arrow.num_rows == by_duckdb[0] == 5 * 24 * 24
    names = ("random-llada", "gsm8k", "baseline")
    for column, name, seen in zip(("model", "task", "method"), names, by_duckdb[1:], strict=False):
        assert set(by_polars[column]) == {seen} == {name}
    assert by_duckdb[4] == pytest.approx(total)
    third = by_polars.filter(polars.col("trajectory") == 2).sort("step", "position")
    np.testing.assert_array_equal(third["token"].to_numpy().reshape(24, 24), cells[2].token)


def test_the_hub_s_library_reads_the_cells(recorded, tmp_path):
    datasets = pytest.importorskip("datasets")
    pattern = str(recorded[0].config.out / "*" / "*" / "*" / "cells" / "*.parquet")
    rows = datasets.load_dataset(
        "parquet", data_files=pattern, split="train", cache_dir=str(tmp_path / "cache")
    )
    assert len(rows) == 5 * 24 * 24
    assert rows.column_names[0] == "trajectory"
