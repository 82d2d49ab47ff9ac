"""Signals of users' own: computed once, alike over a recording and inside a decode."""

import importlib
from dataclasses import replace

import numpy as np
import pytest

from c4._check import SHAPE, _made_decodes
from c4._check import _signals as read_all
from c4.analysis.signal_table import signal_table
from c4.errors import ConfigError
from c4.gates import run_signals
from c4.gates.live import LiveGate
from c4.gates.own_signals import find_signal, own_signals
from c4.gates.run_signals import load_signals
from c4.gates.signals import read_signals
from c4.record.plan import RunConfig
from c4.replay.exits import ask_gates
from c4.store.runs import open_run
from tests.recordings import record

MADE = _made_decodes()


@pytest.fixture
def recorded_run(random_llada, tmp_path):
    """A recording by a random model, whose signals nobody has read yet."""
    config = RunConfig(task="gsm8k", model=str(random_llada), source="embedded", n=2, out=tmp_path)
    return open_run(record(config)[0])


def warmth(s, cells):
    """Sums of float32 in the order in which they stand, so the layout in memory matters."""
    return cells.confidence.sum(axis=1) / 3


THIRDS = np.random.default_rng(0).random((16, 16), dtype=np.float32)


class Warm:
    signals = (warmth,)

    def __init__(self, least: float) -> None:
        self.least = least

    def fires(self, s):
        return s.warmth >= self.least


@pytest.mark.parametrize("least", [2.0, 3.0, 3.5, 9.0])
def test_a_decode_stops_where_the_recording_says(least):
    gate = Warm(least)
    for made in MADE:
        fires = gate.fires(made.signals([gate]))
        live = LiveGate(gate, SHAPE, made.reader, ("no", "yes"))
        stops = next((view.step for view in made.views if live.fires(view)), 0)
        assert stops == (int(fires.argmax()) + 1 if fires.any() else 0)


def test_the_layout_of_a_recording_changes_no_sum():
    made = MADE[0]
    own = own_signals([Warm(1.0)])
    stored = replace(made.cells, confidence=THIRDS[:, : SHAPE.length])
    turned = replace(stored, confidence=np.asfortranarray(stored.confidence))  # as Parquet has it
    assert not np.array_equal(warmth(None, stored), warmth(None, turned))
    first, second = (
        read_signals(cells[None], SHAPE, made.reader, [("no", "yes")], own)[0]
        for cells in (stored, turned)
    )
    assert np.array_equal(first.warmth, second.warmth)


def test_signals_are_cached_beside_the_recording_until_their_source_changes(
    recorded_run, monkeypatch
):
    own = own_signals([Warm(1.0)])
    (first,) = load_signals(recorded_run, own=own)
    assert first.signals.warmth.shape == first.signals.step.shape
    monkeypatch.setattr(run_signals, "_compute", refuse)
    (again,) = load_signals(recorded_run, own=own)
    assert np.array_equal(first.signals.warmth, again.signals.warmth)
    edited = {"warmth": replace(own["warmth"], compute=named("warmth"))}
    with pytest.raises(AssertionError, match="computed anew"):
        list(load_signals(recorded_run, own=edited))


def refuse(*_):
    raise AssertionError("computed anew")


def test_the_cache_without_own_signals_is_kept_beside_it(recorded_run, monkeypatch):
    list(load_signals(recorded_run))
    list(load_signals(recorded_run, own=own_signals([Warm(1.0)])))
    monkeypatch.setattr(run_signals, "_compute", refuse)
    (plain,) = load_signals(recorded_run)
    assert not hasattr(plain.signals, "warmth")


def test_a_gate_may_name_c4_s_own_signals_too(recorded_run):
    class Both(Warm):
        signals = ("entropy", warmth)

    own = own_signals([Both(1.0)])
    assert list(own) == ["warmth"]
    (part,) = load_signals(recorded_run, own=own)
    assert ask_gates({"both": Both(1.0)}, part, ())["both"].shape == part.trajectory.shape


def named(name):
    def compute(s, cells):
        return s.run

    compute.__name__ = name
    compute.__module__ = "a notebook"  # which has no file
    return compute


other = named("warmth")


@pytest.mark.parametrize(
    ("signals", "message"),
    [
        ("flux", "must be a tuple"),
        ((warmth, other), "gates would call both warmth and warmth warmth"),
        ((7,), "is no signal"),
        (("my_signals:",), "write module:object"),
        (("entropi",), "did you mean entropy?"),
        ((lambda s, cells: s.run,), "gates cannot ask for a signal named <lambda>"),
        ((named("trajectory"),), "would hide c4's own trajectory"),
        (property(lambda self: (warmth,)), "the signals of Mine must be a tuple in its class"),
    ],
)
def test_what_cannot_be_a_signal_is_refused(signals, message):
    with pytest.raises(ConfigError) as refused:
        own_signals([type("Mine", (), {"signals": signals})()])
    assert message in str(refused.value)


def test_a_stack_of_trajectories_has_the_signal_of_each():
    several = MADE[:2]
    stacked = read_all(several, [Warm(1.0)])
    for i, made in enumerate(several):
        assert np.array_equal(stacked.warmth[i], made.signals([Warm(1.0)]).warmth)


def test_a_signal_that_is_named_in_two_ways_is_one(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "two_ways.py").write_text("def flux(s, cells):\n    return s.run\n")
    by_file, by_module = find_signal("two_ways.py:flux"), find_signal("two_ways:flux")
    gate = type("Mine", (), {"signals": (by_file.compute,)})
    assert list(own_signals([gate], ["two_ways.py:flux", "two_ways:flux"])) == ["flux"]
    assert by_file.definition == by_module.definition


def test_what_was_computed_before_a_module_was_edited_is_not_taken_for_the_new(
    recorded_run, tmp_path, monkeypatch
):
    source = tmp_path / "edited_signal.py"
    source.write_text("def level(s, cells):\n    return s.run * 0 + 1\n")
    monkeypatch.syspath_prepend(tmp_path)
    module = importlib.import_module("edited_signal")
    assert set(signal_table(recorded_run, [module.level])["level"]) == {1.0}
    source.write_text("def level(s, cells):\n    return s.run * 0 + 100\n")
    assert set(signal_table(recorded_run, [module.level])["level"]) == {1.0}  # not loaded again
    importlib.reload(module)
    assert set(signal_table(recorded_run, [module.level])["level"]) == {100.0}


def test_a_function_of_a_notebook_is_computed_every_time(recorded_run):
    first, second = named("level"), named("level")
    second.__code__ = (lambda s, cells: s.run * 0 - 7).__code__
    assert -7.0 not in set(signal_table(recorded_run, [first])["level"])
    assert set(signal_table(recorded_run, [second])["level"]) == {-7.0}


def test_a_signal_sees_c4_s_own_signals_and_no_others():
    def peeking(s, cells):
        return s.warmth

    gate = type("Mine", (), {"signals": (warmth, peeking), "fires": lambda self, s: s.peeking > 0})
    made = MADE[0]
    with pytest.raises(ConfigError, match="the signal peeking fails: AttributeError"):
        made.signals([gate])
    live = LiveGate(gate(), SHAPE, made.reader, ("no", "yes"))
    with pytest.raises(ConfigError, match="the signal peeking fails: AttributeError"):
        live.fires(made.views[0])
