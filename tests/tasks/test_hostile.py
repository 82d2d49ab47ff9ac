"""Hostile programs neither pass nor get out, leave nothing behind, and cannot blame the machine."""

import ctypes
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
from hostile import (
    HOSTILE,
    LOOK,
    THIEVES,
    Control,
    Kind,
    blames_without_filter,
    outside_world,
    passes_in_one_process,
    passes_without_wall,
    run_hostile,
    survivors,
)

from c4.tasks.sandbox.run import can_isolate

isolated = pytest.mark.skipif(
    not can_isolate(), reason="this machine cannot isolate model-written code"
)
PR_SET_CHILD_SUBREAPER = 36


def label(hostile):
    return f"{hostile.kind}: {hostile.name}"


def of_control(control):
    return [hostile for hostile in HOSTILE if hostile.control is control and not hostile.slow]


@pytest.fixture(scope="module")
def world():
    """Something to reach outside; whoever leaves the sandbox becomes a child of this process."""
    prctl = ctypes.CDLL(None).prctl
    with pytest.MonkeyPatch.context() as patch, outside_world() as world:
        patch.setenv("C4_TEST_SECRET", "secret")
        prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        yield world
        prctl(PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)


def living():
    """Children of this process, and whatever the sandbox has left."""
    tasks = Path("/proc/self/task").glob("*/children")
    return {int(pid) for path in tasks for pid in path.read_text().split()} | {
        *survivors(os.getpid())
    }


def test_there_are_enough_of_them_and_none_twice():
    names = [label(hostile) for hostile in HOSTILE]
    assert len(names) == len(set(names)) >= 120
    assert {hostile.kind for hostile in HOSTILE if not hostile.slow} == set(Kind)


@isolated
@pytest.mark.parametrize(
    "hostile",
    [
        pytest.param(hostile, id=label(hostile), marks=[pytest.mark.slow] if hostile.slow else [])
        for hostile in HOSTILE
    ],
)
def test_a_hostile_program_ends_as_it_should_and_reaches_nothing(hostile, world):
    before = living()
    outcome = run_hostile(hostile.in_world(world.values))
    assert outcome.verdict in hostile.ends, outcome.detail
    assert outcome.detail.isprintable()
    if hostile.kind is Kind.ESCAPE and hostile.name != "kills its group":
        # Made to its end: else it may have failed for a reason of its own, such as a mistake in it.
        assert outcome.detail == "AssertionError:"
    assert world.touched() == []
    assert living() <= before


@isolated
def test_honest_programs_pass_the_tests_that_hostile_ones_are_given():
    tried = {(h.preamble, h.tests, h.reference): h for h in HOSTILE}.values()
    honest = [replace(hostile, program=hostile.reference) for hostile in tried]
    with ThreadPoolExecutor(2) as pool:
        ends = list(pool.map(run_hostile, honest))
    failed = [(label(h), e) for h, e in zip(honest, ends, strict=True) if e.verdict != "passed"]
    assert failed == []


def test_a_grader_with_one_process_would_be_fooled():
    tried = of_control(Control.ONE_PROCESS)
    with ThreadPoolExecutor(2) as pool:
        fooled = list(pool.map(passes_in_one_process, tried))
    assert [label(h) for h, passed in zip(tried, fooled, strict=True) if not passed] == []


@pytest.mark.parametrize("hostile", of_control(Control.NO_WALL), ids=label)
def test_without_a_wall_the_same_program_gets_out(hostile):
    with outside_world() as world:
        assert passes_without_wall(hostile.in_world(world.values))


@isolated
@pytest.mark.parametrize("hostile", of_control(Control.NO_FILTER), ids=label)
def test_without_its_filter_the_same_program_passes_for_a_failure_of_the_machine(hostile):
    assert blames_without_filter(hostile)


@pytest.mark.parametrize("name", THIEVES)
def test_the_same_thieves_find_a_secret_that_is_there(name):
    """Without the sandbox, and with the tests in its own process, every thief succeeds."""
    victim = (
        "def examine():\n"
        "    secret = ''.join(['expected 7102', '93847561'])\n"
        "    compile(secret[9:], '<tests>', 'eval')\n"
        "    return answer()\n"
        "print(examine())\n"
    )
    environment = {"SECRET": "710293847561"} if name.startswith("descriptors") else {}
    command = [sys.executable, "-c", LOOK + THIEVES[name] + victim]
    stolen = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert stolen.stdout.strip() == "710293847561"
