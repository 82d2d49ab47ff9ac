"""What a log tells of work that takes long."""

import time

import pytest

from c4.cli import progress as module
from c4.cli.progress import progress, status


@pytest.fixture(autouse=True)
def short(monkeypatch):
    monkeypatch.setattr(module, "SECONDS_BEFORE_LINES", 0.05)
    monkeypatch.setattr(module, "SECONDS_BETWEEN_LINES", 0.1)


def test_what_is_over_soon_leaves_no_line(capsys, monkeypatch):
    monkeypatch.setattr(module, "SECONDS_BEFORE_LINES", 60)
    with status("loading") as note, progress("reading", total=1) as advance:
        note("still loading")
        advance()
    assert capsys.readouterr().err == ""


def test_a_first_line_comes_before_the_others(capsys):
    with progress("reading", total=3) as advance:
        for wait in (0.06, 0.06, 0.1):
            time.sleep(wait)
            advance("mmlu")
    lines = capsys.readouterr().err.splitlines()
    assert lines[0].startswith("reading: 1 of 3, eta 0:00:00 mmlu")
    assert lines[-1].startswith("reading: 3 of 3, eta 0:00:00 mmlu")


def test_what_cannot_be_counted_says_how_long_it_has_taken(capsys):
    with status("loading") as note:
        time.sleep(0.2)
        note("drawing text, 2 of 3")
        time.sleep(0.3)
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "loading, 0 s so far"
    assert "drawing text, 2 of 3, 0 s so far" in lines


def test_nothing_is_said_after_the_end(capsys):
    with status("loading"):
        pass
    time.sleep(0.2)
    assert capsys.readouterr().err == ""


def test_a_log_tells_how_long_it_will_take(capsys, monkeypatch):
    clock = iter([0, 20])
    monkeypatch.setattr(module.time, "monotonic", lambda: next(clock))
    with progress("recording", total=3) as advance:
        advance("2 s each")
    assert "recording: 1 of 3, eta 0:00:40 2 s each" in capsys.readouterr().err
