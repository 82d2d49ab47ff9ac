import numpy as np
import pytest

from c4.errors import ConfigError, NotReplayable
from c4.replay import NONE, Control, Promise, certify, make_grid, trajectories_needed
from c4.replay._calibrate import pareto_front
from c4.replay._grid import DEFAULT_RANGES, at_exit, parse_values


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("0.7", [0.7]),
        ("1,2,5", [1, 2, 5]),
        ("0.5:0.8:0.1", [0.5, 0.6, 0.7, 0.8]),
        ("3:3:1", [3]),
        ("linear,cosine", ["linear", "cosine"]),
    ],
)
def test_values_are_one_a_list_or_a_range_with_both_ends(text, values):
    assert parse_values("x", text) == values


@pytest.mark.parametrize("text", ["1:2", "1:2:0", "2:1:1", "a:b:c", "1:2:3:4"])
def test_a_range_that_cannot_be_meant_is_refused(text):
    with pytest.raises(ConfigError, match="x="):
        parse_values("x", text)


@pytest.mark.parametrize("gate", DEFAULT_RANGES)
def test_every_gate_has_a_grid_of_settings_it_accepts(gate):
    grid = make_grid(gate, {})
    settings = list(grid.settings())
    assert len(grid) == len(settings) == len({tuple(s.items()) for s in settings})
    assert sorted(grid.from_strict_to_loose()) == list(range(len(grid)))


def test_the_user_s_values_take_the_place_of_the_default_ones():
    grid = make_grid("cvee", {"gamma": "2", "tau": "0.6,0.8"})
    assert grid.values["gamma"] == [2.0]
    assert grid.values["tau"] == [0.6, 0.8]
    assert len(grid) == 2 * len(grid.values["p_min"])


def test_the_strictest_setting_comes_first_and_the_loosest_last():
    grid = make_grid("cvee", {"gamma": "2", "tau": "0.6,0.8", "p_min": "1,5"})
    order = [list(grid.settings())[i] for i in grid.from_strict_to_loose()]
    assert (order[0]["tau"], order[0]["p_min"]) == (0.8, 5)
    assert (order[-1]["tau"], order[-1]["p_min"]) == (0.6, 1)


def test_neighbours_differ_in_one_value_by_one_place():
    grid = make_grid("cvee", {"gamma": "2", "tau": "0.5,0.6,0.7", "p_min": "1,2,3"})
    settings = list(grid.settings())
    middle = settings.index({"tau": 0.6, "gamma": 2.0, "p_min": 2})
    near = [(settings[i]["tau"], settings[i]["p_min"]) for i in grid.neighbours(middle)]
    assert sorted(near) == [(0.5, 2), (0.6, 1), (0.6, 3), (0.7, 2)]
    assert len(grid.neighbours(0)) == 2


@pytest.mark.parametrize(
    ("gate", "asked", "error"),
    [
        ("cvee", {"tau": "7"}, ConfigError),
        ("cvee", {"tua": "0.7"}, ConfigError),
        ("oracle", {}, ConfigError),
        ("wino", {}, NotReplayable),
    ],
)
def test_a_grid_that_cannot_be_meant_is_refused(gate, asked, error):
    with pytest.raises(error):
        make_grid(gate, asked)


def test_an_exit_reads_its_own_step_and_no_exit_the_trajectory_s_last():
    values = np.array([[10, 11, 12], [20, 21, NONE]])
    exits = np.array([[1, 2], [0, 1], [3, 0]])
    at = at_exit(values, exits, np.array([3, 2]))
    assert at.tolist() == [[10, 21], [12, 20], [12, 21]]


def test_the_front_holds_what_nothing_beats_in_both():
    steps = np.array([5.0, 3.0, 4.0, 6.0, 3.0])
    drop = np.array([0.0, 2.0, 2.0, 0.0, 1.0])
    assert pareto_front(steps, drop).tolist() == [True, False, False, False, True]


def test_promises_that_cannot_be_kept_are_refused():
    with pytest.raises(ConfigError, match="risk lies between 0 and 1"):
        Promise(risk=1.5)
    with pytest.raises(ConfigError, match="tolerance is at least 0"):
        Promise(tolerance=-1)


def test_the_fixed_sequence_stops_at_the_first_that_fails():
    losses = np.array([0, 0, 9, 0])
    passed = certify(losses, 100, risk=0.05, delta=0.1, order=[0, 1, 2, 3])
    assert passed.tolist() == [True, True, False, False]
    reordered = certify(losses, 100, risk=0.05, delta=0.1, order=[3, 0, 1, 2])
    assert reordered.tolist() == [True, True, False, True]


def test_bonferroni_asks_the_more_the_larger_the_grid():
    one = certify(np.array([1]), 120, risk=0.05, delta=0.1, control=Control.BONFERRONI)
    many = certify(np.array([1] * 100), 120, risk=0.05, delta=0.1, control=Control.BONFERRONI)
    assert one.all()
    assert not many.any()


@pytest.mark.parametrize("control", Control)
def test_the_guarantee_holds_at_the_promised_rate(control):
    """Many calibrations on simulated settings whose true risks are known."""
    rng = np.random.default_rng(0)
    true_risk = np.linspace(0.005, 0.12, 40)  # from the strictest to the loosest
    risk, delta, n, repeats = 0.05, 0.1, 150, 4000
    violated = certified = 0
    for _ in range(repeats):
        # A trajectory that is lost under a strict setting is lost under the looser ones too.
        luck = rng.random((n, 1))
        losses = (luck <= true_risk).sum(axis=0)
        passed = certify(losses, n, risk=risk, delta=delta, control=control)
        violated += bool((passed & (true_risk > risk)).any())
        certified += bool(passed.any())
    slack = 3 * np.sqrt(delta * (1 - delta) / repeats)
    assert violated / repeats <= delta + slack
    assert certified / repeats > 0.3  # and it does certify something


def test_how_many_trajectories_would_be_needed():
    needed = trajectories_needed(0.0, risk=0.05, level=0.1)
    assert 0.95**needed <= 0.1 < 0.95 ** (needed - 1)
    assert trajectories_needed(0.02, risk=0.05, level=0.1) > needed
    assert trajectories_needed(0.05, risk=0.05, level=0.1) is None
