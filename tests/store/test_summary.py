"""A run in one line, beside the baseline of the same examples."""

import logging

import pytest
from made import PARTS, cut, make_manifest, make_row, write

from c4.errors import RunError
from c4.store.manifest import run_folder
from c4.store.parts import list_parts
from c4.store.summary import summarise

SAMPLER = make_manifest(
    cells=False, method="fast-dllm", label="fast-dllm", rule={"name": "threshold", "tau": 0.9}
)


def folder_of(root, manifest):
    return run_folder(root, "m", "gsm8k", manifest.identity["label"])


def keep(root, manifest, **options):
    write(folder_of(root, manifest), manifest=manifest, **options)
    return folder_of(root, manifest)


def test_the_numbers_are_those_of_the_rows(tmp_path):
    summary = summarise(keep(tmp_path, SAMPLER))
    rows = [make_row(i) for i in range(5)]
    assert (summary.model, summary.task, summary.method) == ("m", "gsm8k", "fast-dllm")
    assert (summary.n, summary.graded) == (5, 5)
    assert summary.accuracy == sum(row.correct for row in rows) / 5
    assert (summary.steps, summary.budget, summary.saving) == (6, 6, 0)
    assert summary.fired == 4 / 5
    assert summary.tokens_per_forward == 1
    assert (summary.drop_points, summary.identical) == (None, None)
    assert summary.wall_seconds == sum(row.wall_seconds for row in rows)


@pytest.mark.parametrize("cells", [True, False], ids=["recorded", "results alone"])
@pytest.mark.parametrize("label", ["baseline", "whole"])
def test_a_full_decode_is_the_baseline_recorded_or_not(tmp_path, cells, label):
    folder = keep(tmp_path, SAMPLER)
    keep(tmp_path, make_manifest(cells, label=label))
    assert (summarise(folder).drop_points, summarise(folder).identical) == (0, 1)


@pytest.mark.parametrize(
    "change",
    [
        {"seed": 1},
        {"batch": 2},
        {"shape": {"length": 6, "budget": 4, "block_length": 3}},
        {"rule": {"name": "cctc"}},
        {"gate": {"name": "cvee"}},
        {"forward": {"cache": "dual"}},
    ],
    ids=str,
)
def test_what_was_decoded_otherwise_is_no_baseline(tmp_path, change):
    folder = keep(tmp_path, SAMPLER)
    keep(tmp_path, make_manifest(**change))
    assert (summarise(folder).drop_points, summarise(folder).identical) == (None, None)


def test_only_examples_that_both_have_are_compared(tmp_path):
    folder = keep(tmp_path, SAMPLER)
    keep(tmp_path, make_manifest(), indices=range(3), parts=PARTS[:1])
    assert summarise(folder).identical == 1
    assert summarise(folder, {2, 3}).identical == 1
    assert summarise(folder, {3, 4}).identical is None
    with pytest.raises(RunError, match="none of the examples asked for is there"):
        summarise(folder, {77})


def test_a_run_just_begun_has_a_line_of_its_own(tmp_path):
    summary = summarise(keep(tmp_path, SAMPLER, indices=(), parts=()))
    assert (summary.n, summary.graded, summary.accuracy) == (0, 0, None)
    assert (summary.steps, summary.saving, summary.fired) == (0, 0, 0)


def test_a_damaged_neighbour_is_named_and_hides_no_sound_run(tmp_path, caplog):
    folder = keep(tmp_path, SAMPLER)
    baseline = keep(tmp_path, make_manifest())
    path = list_parts(baseline / "rows")[0].path
    cut(path)
    with caplog.at_level(logging.WARNING):
        summary = summarise(folder)
    assert (summary.n, summary.drop_points) == (5, None)
    assert f"nothing is compared with {path}: damaged" in caplog.text
    with pytest.raises(RunError, match=rf"{path.name}: damaged"):
        summarise(baseline)
