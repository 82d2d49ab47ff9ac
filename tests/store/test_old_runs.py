"""Runs that earlier versions wrote still say what they said; tests/data has one of each format."""

import json
import shutil
from pathlib import Path

import polars as pl
import pytest

from c4.gates.cvee import CVEE
from c4.gates.prophet import Prophet
from c4.replay.decisions import replay
from c4.store.check import check_run
from c4.store.runs import find_recordings, find_runs
from c4.store.summary import summarise

RUNS = Path(__file__).parents[1] / "data" / "runs"
FORMATS = sorted(RUNS.glob("v*"))


def said(root):
    """Exits, answers and summaries of the runs below a root."""
    (run,) = find_recordings(root)
    decisions = pl.concat(replay(run, {"cvee": CVEE(), "prophet": Prophet()}))
    kept = decisions.select("gate", "trajectory", "steps", "fired", "answer", "correct", "text")
    summaries = [summarise(folder) for folder in find_runs(root)]
    return {
        "decisions": kept.rows(),
        "runs": [
            [s.method, s.n, s.accuracy, s.steps, s.drop_points, s.identical] for s in summaries
        ],
    }


@pytest.mark.parametrize("stored", FORMATS, ids=lambda path: path.name)
def test_an_old_run_is_sound_and_says_what_it_said(stored, tmp_path):
    root = shutil.copytree(stored, tmp_path / "runs")
    found = [finding for folder in find_runs(root) for finding in check_run(folder)]
    assert [finding.what for finding in found if finding.what] == []
    expected = json.loads((stored / "said.json").read_text(encoding="utf-8"))
    assert json.loads(json.dumps(said(root))) == expected
