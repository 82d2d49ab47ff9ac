"""The report beside the weights, made from the training's log."""

import json

import pytest
from fresh import FOLDER, SETTINGS

from training.report import loss_figure, read_log, write_report
from training.settings import PHASES


def line(phase, step, loss, seconds):
    facts = {"phase": phase.name, "step": step, "loss": loss, "seconds": seconds}
    return facts | {"tokens": 100 * step, "problems": {"mmlu": step}}


@pytest.fixture
def work(tmp_path):
    """Two log lines a phase; the first phase was killed and repeats a step."""
    lines = [line(phase, step, 4.0 / step, 30.0 * step) for phase in PHASES for step in (20, 40)]
    lines.insert(2, line(PHASES[0], 40, 9.0, 70.0))
    (tmp_path / "log.jsonl").write_text("".join(json.dumps(x) + "\n" for x in lines))
    return tmp_path


def test_the_last_account_of_a_step_counts(work):
    log = read_log(work)
    assert len(log) == 2 * len(PHASES)
    assert [x["loss"] for x in log[:2]] == [0.2, 9.0]


def test_phases_are_drawn_one_after_the_other(work):
    (axes,) = loss_figure(read_log(work)).axes
    drawn = [curve for curve in axes.lines if curve.get_label() in {p.name for p in PHASES}]
    assert [curve.get_label() for curve in drawn] == [phase.name for phase in PHASES]
    starts = [curve.get_xdata()[0] for curve in drawn]
    assert starts == sorted(starts)


def test_the_report_has_the_keys_of_the_one_that_ships(work, tmp_path):
    write_report(work, tmp_path, SETTINGS, {"parameters": 3})
    made = json.loads((tmp_path / "training.json").read_text())
    shipped = json.loads((FOLDER / "training.json").read_text())
    assert made.keys() == shipped.keys()
    assert made["shapes"] == shipped["shapes"]
    assert made["phases"][0].keys() == shipped["phases"][0].keys()
    assert made["phases"][0]["last_loss"] == 4.6
    assert (tmp_path / "loss.png").stat().st_size > 1000
