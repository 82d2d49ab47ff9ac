"""What goes out: the step at which each token was unmasked."""

import json
from pathlib import Path

import numpy as np

from c4.store import open_run
from tests.commands import done, refused
from tests.store.made import write_anew

TASK = Path(__file__).parents[2] / "data" / "runs" / "v3" / "model=tiny" / "task=mmlu"
RUN = TASK / "method=c4"


def test_the_step_map_is_that_of_the_decode(tmp_path):
    out = tmp_path / "steps.jsonl"
    done("export", RUN, "--format", "steps", "--out", out)
    lines = [json.loads(line) for line in out.read_text().splitlines()]
    rows = list(open_run(RUN).rows())
    assert [line["trajectory"] for line in lines] == [row.trajectory for row in rows]
    for line, row in zip(lines, rows, strict=True):
        assert line["output_ids"] == row.final_ids
        assert line["step_map"] == row.commit_step
        assert min(line["step_map"]) == 1
        assert max(line["step_map"]) == row.steps == line["steps"]


def test_the_step_map_tells_what_was_masked_when():
    result = done("export", TASK / "method=baseline", "--out", "-")
    lines = [json.loads(line) for line in result.stdout.splitlines()]
    recorded = list(open_run(TASK / "method=baseline").cells())
    assert len(lines) == len(recorded) == 3
    for line, (_, cells) in zip(lines, recorded, strict=True):
        steps = np.arange(1, line["steps"] + 1)
        masked = np.array(line["step_map"])[None, :] >= steps[:, None]
        assert np.array_equal(masked, cells.masked)
        assert np.array_equal(cells.token[-1][masked[-1]], np.array(line["output_ids"])[masked[-1]])


def test_a_run_of_an_own_task_is_exported_without_its_code(tmp_path):

    folder = write_anew(TASK / "method=baseline", tmp_path, task="my_task.py:TASK")
    result = done("export", folder, "--out", "-")
    assert len(result.stdout.splitlines()) == 3


def test_another_format_is_refused(tmp_path):
    assert "steps" in refused("export", RUN, "--format", "csv")
