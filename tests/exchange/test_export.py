"""What goes out: the step at which each token was unmasked."""

import json
from pathlib import Path

from typer.testing import CliRunner

from c4.cli._app import app
from c4.store import open_run

RUN = Path(__file__).parents[1] / "data" / "runs" / "v3" / "model=tiny" / "task=mmlu" / "method=c4"


def test_the_step_map_is_that_of_the_decode(tmp_path):
    out = tmp_path / "steps.jsonl"
    result = CliRunner().invoke(app, ["export", str(RUN), "--format", "steps", "--out", str(out)])
    assert result.exit_code == 0, result.output
    lines = [json.loads(line) for line in out.read_text().splitlines()]
    rows = list(open_run(RUN).rows())
    assert [line["trajectory"] for line in lines] == [row.trajectory for row in rows]
    for line, row in zip(lines, rows, strict=True):
        assert line["output_ids"] == row.final_ids
        assert line["step_map"] == row.commit_step
        assert min(line["step_map"]) == 1
        assert max(line["step_map"]) == row.steps == line["steps"]


def test_another_format_is_refused(tmp_path):
    result = CliRunner().invoke(app, ["export", str(RUN), "--format", "csv"])
    assert result.exit_code == 2
    assert "steps" in result.stderr
