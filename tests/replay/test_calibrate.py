import json
import math
from dataclasses import asdict, fields
from types import SimpleNamespace

import numpy as np
import pytest

from c4.errors import ConfigError
from c4.gates.calibration_files import check_calibration, load_calibration
from c4.gates.run_signals import RunSignals
from c4.gates.signals import NONE, Signals
from c4.replay.calibration import Requirement, calibrate, pareto_front
from c4.replay.certificates import Control, certify, trajectories_needed
from c4.replay.exits import RunSubset, at_exit
from c4.replay.grids import DEFAULT_RANGES, grid_exits, make_grid, parse_values
from c4.store.manifest import content_checksum
from c4.tasks import TASKS, AnswerReading, Example, Family
from tests.store.made import MANIFEST


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
    ("gate", "asked"),
    [
        *[("cvee", {"tau": "7"}), ("cvee", {"tua": "0.7"}), ("oracle", {}), ("wino", {})],
        *[("cvee", {"tau": text}) for text in ("0:1:1e-9", "0:inf:1", "nan", "0:1:nan", "", ",")],
        ("cvee", {"p_min": "0:9e99:1"}),
        ("cvee", {"p_min": "1:3000:1", "tau": "0:1:0.001"}),
    ],
)
def test_a_grid_that_cannot_be_meant_is_refused(gate, asked):
    with pytest.raises(ConfigError):
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


@pytest.mark.parametrize(
    ("promise", "message"),
    [
        ({"risk": 1.5}, "risk lies between 0 and 1"),
        ({"tolerance": -1}, "tolerance is at least 0 points"),
        ({"tolerance": math.nan}, "tolerance is at least 0 points"),
    ],
)
def test_promises_that_cannot_be_kept_are_refused(promise, message):
    with pytest.raises(ConfigError, match=message):
        Requirement(**promise)


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


STEPS = 10
RISKS = {
    "gsm8k": [0.4, 0.08, 0.07, 0.09, 0.06, 0.02, 0.12, 0.08, 0.01],
    "mmlu": [0.1, 0.022, 0.032, 0.012, 0.042, 0.005, 0.04, 0.022, 0.005],
}
"""How often the answer at each step but the last is not the last one. Later is not always safer."""
EXITS = {"fraction": "0.1:0.9:0.1"}


def population(task, risks, size, rng):
    """Trajectories of which some, at every step, would be left with another answer."""
    ranks = rng.permuted(np.tile(np.arange(size), (STEPS, 1)), axis=1).T  # (size, STEPS)
    answer = (ranks < np.round(size * np.array([*risks, 0.0]))).astype(np.int32)
    columns = {f.name: np.zeros((size, STEPS), dtype=np.int32) for f in fields(Signals)}
    columns["step"] += np.arange(1, STEPS + 1, dtype=np.int32)
    columns["budget"] += STEPS
    columns["answer"] = answer
    rows = [SimpleNamespace(trajectory=i, example=Example("", "right")) for i in range(size)]
    facts = {"task_name": task, "method": "baseline", "reading": AnswerReading()}
    run = SimpleNamespace(**facts, task=TASKS[task], rows=lambda: rows, cells=tuple)
    signals = RunSignals(np.arange(size), Signals(**columns), [["right", "wrong"]] * size)
    return RunSubset(run, signals)


def drawn(subset, n, rng):
    return RunSubset(subset.run, subset.signals.choose(rng.integers(len(subset), size=n)))


@pytest.mark.parametrize("control", Control)
def test_what_calibration_chooses_is_as_safe_as_it_says(control):
    """Many pools of two tasks, drawn from trajectories all of whose risks are known."""
    rng = np.random.default_rng(0)
    everyone = [population(task, risks, 1000, rng) for task, risks in RISKS.items()]
    grid = make_grid("progress", EXITS)
    lost = [~c.same_at(grid_exits(grid, c.signals)) for c in everyone]
    true_risk = np.mean([loss.mean(axis=1) for loss in lost], axis=0)
    requirement = Requirement(risk=0.05, delta=0.1, control=control)
    assert (true_risk > requirement.risk).tolist() == [True] * 5 + [False, True, True, False]
    repeats, violated, careless, chose = 400, 0, 0, 0
    for _ in range(repeats):
        result = calibrate(grid, [drawn(c, 129, rng) for c in everyone], requirement)
        chose += result.chosen is not None
        violated += result.chosen is not None and true_risk[result.chosen] > requirement.risk
        # Without a correction for trying many, the cheapest that looks safe is often not.
        seeming = np.flatnonzero(result.table["p_value"].to_numpy() <= requirement.delta)
        careless += len(seeming) > 0 and true_risk[seeming[0]] > requirement.risk
    slack = 3 * np.sqrt(requirement.delta * (1 - requirement.delta) / repeats)
    assert violated / repeats <= requirement.delta + slack
    assert careless / repeats > requirement.delta + slack
    assert chose / repeats > 0.3


def fewest(share, risk, level, beyond=0):
    """By brute force: the first number of trajectories with which so few losses convince."""
    for n in range(beyond + 1, 2000):
        losses = math.floor(share * n + 1e-9)
        chance = sum(math.comb(n, k) * risk**k * (1 - risk) ** (n - k) for k in range(losses + 1))
        if chance <= level:
            return n
    raise AssertionError


@pytest.mark.parametrize("share", [0.0, 0.01, 0.02, 1 / 30, 0.07])
@pytest.mark.parametrize("risk", [0.05, 0.1, 0.2])
@pytest.mark.parametrize("level", [0.1, 0.01, 0.1 / 160])
def test_the_trajectories_needed_are_the_fewest_that_would_do(share, risk, level):
    if share >= risk:
        assert trajectories_needed(share, risk=risk, level=level) is None
        return
    for beyond in (0, 50):
        needed = trajectories_needed(share, risk=risk, level=level, beyond=beyond)
        assert needed == fewest(share, risk, level, beyond)


def test_a_setting_that_loses_almost_the_risk_is_not_helped_by_more():
    assert trajectories_needed(0.02, risk=0.05, level=0.1) == 45
    assert trajectories_needed(0.049999, risk=0.05, level=0.1) is None


def lossy(losses, n):
    """A pool of which each setting of `EXITS`, from the loosest on, loses so many."""
    subset = population("gsm8k", [0.0] * (STEPS - 1), n, np.random.default_rng(0))
    for step, count in enumerate(losses):
        subset.signals.signals.answer[:count, step] = 1
    return subset


def test_what_would_be_needed_is_said_for_the_setting_on_which_the_method_hangs():
    grid = make_grid("progress", EXITS)
    losses = [9, 9, 9, 0, 9, 9, 9, 9, 1]  # the most cautious setting is the last
    sequence = calibrate(grid, [lossy(losses, 40)], Requirement(risk=0.05, delta=0.1))
    assert sequence.chosen is None
    needed = fewest(1 / 40, 0.05, 0.1, beyond=40)
    assert sequence.statement.endswith(f"loses 2.5%, and at that rate {needed} would be needed")
    assert "the most cautious setting, which is tried first," in sequence.statement
    every = Requirement(risk=0.05, delta=0.1, control=Control.BONFERRONI)
    at_once = calibrate(grid, [lossy(losses, 40)], every)
    assert at_once.chosen is None
    needed = fewest(0.0, 0.05, 0.1 / 9, beyond=40)
    assert at_once.statement.endswith(
        f"the best setting loses 0.0%, and at that rate {needed} would be needed"
    )


def test_more_trajectories_of_a_setting_that_loses_too_much_would_not_help():
    losses = [0] * 8 + [9]
    pool = [lossy(losses, 40)]
    statement = calibrate(make_grid("progress", EXITS), pool, Requirement(risk=0.05)).statement
    assert statement.endswith("loses 22.5%, too much for more of them to help")


FROZEN = {
    "gate": "cvee",
    "parameters": {"tau": 0.6},
    "statement": "none fits",
    "pool": [{"identity": MANIFEST.identity, "trajectories": [0, 1]}],
    "reading": asdict(AnswerReading()),
    "seconds": 0.5,
    "table": [{"tau": 0.5, "worst_drop": 3.0}, {"tau": 0.6, "worst_drop": 1.0}],
}


def signed(content):
    """A calibration's content with the checksum that goes with it."""
    return content | {"checksum": content_checksum(content)}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("[1, 2]", "it holds a list"),
        ("3", "it holds a int"),
        ("null", "it holds a NoneType"),
        ("{", "Expecting property name"),
        ({}, "it has no 'pool'"),
        *(({k: v for k, v in FROZEN.items() if k != gone}, f"it has no '{gone}'")
          for gone in FROZEN),
        (FROZEN | {"parameters": [1]}, "not a file that"),
        (FROZEN | {"pool": 3}, "not a file that"),
        (FROZEN | {"pool": []}, "its pool is empty"),
        (FROZEN | {"table": [3]}, "not a file that"),
        (FROZEN | {"table": []}, "its table has no row for {'tau': 0.6}"),
        (FROZEN | {"pool": ["gsm8k"]}, "not a file that"),
        (FROZEN | {"pool": [{"identity": {}}]}, "it has no 'trajectories'"),
        (json.dumps(FROZEN), "it has no 'checksum'"),
        (json.dumps(signed(FROZEN) | {"parameters": {"tau": 0.7}}), "edited or damaged since"),
    ],
)  # fmt: skip
def test_a_file_that_is_no_calibration_is_refused_in_words(tmp_path, content, message):
    path = tmp_path / "x.json"
    path.write_text(content if isinstance(content, str) else json.dumps(signed(content)))
    with pytest.raises(ConfigError, match=r"x\.json: ") as refused:
        load_calibration(path)
    assert message in str(refused.value)


def test_a_calibration_is_read_back_whether_or_not_it_chose_a_setting(tmp_path):
    path = tmp_path / "x.json"
    path.write_text(json.dumps(signed(FROZEN)))
    frozen = load_calibration(path)
    assert (frozen.chosen, frozen.worst_drop, frozen.tried) == ({"tau": 0.6}, 1.0, 2)
    path.write_text(json.dumps(signed(FROZEN | {"parameters": None})))
    nothing = load_calibration(path)
    assert (nothing.parameters, nothing.worst_drop) == (None, None)
    assert check_calibration(path) is None
    with pytest.raises(ConfigError, match=r"x\.json: that calibration chose no setting: none fits"):
        nothing.make(Family.LETTERS)
