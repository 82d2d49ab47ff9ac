"""What a setting is chosen on, and what it is tried on: by which rule, and who is told."""

import json
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from c4.errors import RunError
from c4.gates.calibration_files import PoolShare, load_calibration
from c4.replay.pools import SET_ASIDE, Pools, SplitRule, _choose_pool, split_runs
from c4.store.manifest import run_folder
from c4.store.runs import open_run
from c4.tasks import TASKS, Shape
from tests.commands import c4

IDENTITY = {
    "task": "math",
    "source": "embedded",
    "origin": "embedded:abc",
    "seed": 0,
    "order": "o",
    "model": "tiny",
    "shape": {"length": 72, "budget": 72, "block_length": 8},
}
numbers = st.sets(st.integers(0, 400), min_size=2, max_size=200).map(sorted)


def some_run(**change):
    identity = IDENTITY | change
    return SimpleNamespace(
        folder=Path("runs/x"),
        task=TASKS[identity["task"]],
        task_name=identity["task"],
        model="tiny",
        shape=Shape(**identity["shape"]),
        manifest=SimpleNamespace(identity=identity),
    )


@given(numbers)
def test_what_is_set_aside_comes_first_and_then_the_first_of_the_recording(numbers):
    rule, pool = _choose_pool(some_run(), numbers, None)
    aside = {number for number in numbers if number < 40}
    if aside:
        assert (rule, pool) == (SplitRule.SET_ASIDE, aside)
        return
    assert rule is SplitRule.FIRST
    assert sorted(pool) == numbers[: len(pool)]
    assert len(pool) == (40 if len(numbers) >= 120 else max(1, len(numbers) // 3))
    assert len(pool) < len(numbers)


@given(numbers, st.integers(1, 400))
def test_a_number_of_the_user_s_own_keeps_its_meaning(numbers, below):
    wanted = {number for number in numbers if number < below}
    if wanted:
        assert _choose_pool(some_run(), numbers, below) == (SplitRule.BELOW, wanted)
        return
    with pytest.raises(RunError, match=f"no trajectory below {below} to calibrate on; leave out"):
        _choose_pool(some_run(), numbers, below)


@pytest.mark.parametrize("run", [some_run(source="file"), some_run(task="humaneval")])
def test_where_nothing_is_set_aside_the_first_are_taken(run):
    assert _choose_pool(run, range(164), None) == (SplitRule.FIRST, set(range(40)))


@pytest.mark.parametrize(("numbers", "has"), [([40], "a single"), ([], "no")])
def test_less_than_two_trajectories_cannot_be_split(numbers, has):
    with pytest.raises(RunError, match=rf"{has} trajectory: .*c4 record --task math .*--skip 0"):
        _choose_pool(some_run(), numbers, None)


def test_an_example_is_the_same_problem_whatever_decodes_it():
    pools = Pools([PoolShare(IDENTITY, frozenset({40, 41})), PoolShare(IDENTITY, frozenset({50}))])
    seen = set(range(40)) | {40, 41, 50}
    for change in ({}, {"model": "llada"}, {"batch": 4}, {"method": "c4"}):
        assert pools.of(some_run(**change)) == seen
    for change in ({"seed": 1}, {"origin": "embedded:def"}, {"order": None}, {"task": "gsm8k"}):
        assert pools.of(some_run(**change)) == set(range(40))
    assert SET_ASIDE.of(some_run(source="file")) == set()


@pytest.fixture(scope="module")
def mixed(random_llada, tmp_path_factory):
    """GSM8K with some of what is set aside, MMLU without, MATH with a single trajectory."""
    root = tmp_path_factory.mktemp("mixed")
    common = ["--model", random_llada, "--source", "embedded", "--out", root]
    for task, skip, n in (("gsm8k", 38, 5), ("mmlu", 50, 7), ("math", 40, 1)):
        result = c4("record", "--task", task, "--skip", skip, "--n", n, *common)
        assert result.exit_code == 0, result.output
    return root


def test_each_run_is_split_by_itself_and_the_file_says_how(mixed, tmp_path):
    out = tmp_path / "x.json"
    args = ["--runs", mixed, "--task", "gsm8k", "--task", "mmlu", "--gamma", 2, "--out", out]
    result = c4("calibrate", *args)
    assert result.exit_code == 0, result.output
    assert result.stdout.splitlines()[:3] == [
        "gsm8k: chosen on 2 of the 40 examples set aside for calibration (38 to 39), 3 held out",
        "mmlu: no example set aside for calibration is recorded; chosen on the first 2 of 7 "
        "(50 to 51), 5 held out",
        "pool: gsm8k 2, mmlu 2; 160 settings of cvee",
    ]
    shares = json.loads(out.read_text())["pool"]
    assert [share["trajectories"] for share in shares] == [[38, 39], [50, 51]]
    splits = [
        {"rule": "set-aside", "pool": 2, "held_out": 3},
        {"rule": "first-of-recording", "pool": 2, "held_out": 5},
    ]
    assert [share["split"] for share in shares] == splits
    summary = json.loads(c4("calibrate", *args, "--json").stdout)
    assert list(summary["split"].values()) == splits
    assert load_calibration(out).pool[1].trajectories == {50, 51}
    rows = json.loads(c4("replay", *args[:6], "--config", out, "--json").stdout)
    assert [(row["task"], row["split"], row["n"]) for row in rows] == [
        ("gsm8k", "pool", 2),
        ("gsm8k", "held out", 3),
        ("mmlu", "pool", 2),
        ("mmlu", "held out", 5),
    ]


def test_what_one_run_is_chosen_on_is_held_out_in_no_other(random_llada, tmp_path):
    common = ["--task", "gsm8k", "--model", random_llada, "--source", "embedded", "--cells"]
    runs = []
    for method, skip, n in (("wino", 38, 5), ("klass", 40, 3)):
        span = ["--skip", skip, "--n", n, "--out", tmp_path]
        result = c4("run", "--method", method, *span, *common)
        assert result.exit_code == 0, result.output
        runs.append(open_run(run_folder(tmp_path, random_llada.name, "gsm8k", method)))
    assert {split.name: split.summary for split in split_runs(runs)} == {
        "gsm8k (wino)": {"rule": "set-aside", "pool": 2, "held_out": 2},  # 40 is in the other pool
        "gsm8k (klass)": {"rule": "first-of-recording", "pool": 1, "held_out": 2},
    }


def test_a_single_trajectory_is_refused_with_what_to_type(mixed, tmp_path):
    result = c4("calibrate", "--runs", mixed, "--task", "math", "--out", tmp_path / "x.json")
    assert result.exit_code == 2
    assert result.stdout == ""
    assert "has a single trajectory" in " ".join(result.stderr.split())
    assert not (tmp_path / "x.json").exists()
