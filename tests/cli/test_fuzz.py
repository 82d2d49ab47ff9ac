"""Hostile command lines end with a message, in time, and with a promised exit code."""

import os
import resource
import signal
import subprocess
import sys

import pytest
from fuzz import all_commands, command_of, judge, make_words, make_world, spell

from tests.commands import c4

SEED = 20260101
IN_A_BATCH = 15
SHORT, LONG, APART = 150, 5000, 300
"""Command lines that CI tries, that `make slow` tries, and those of them in own processes."""
SECONDS = 20
"""Processor time that a command line may take."""
MEMORY = 16 * 2**30
"""Bytes of address space: an absurd allocation fails at once."""
BATCHES = [
    pytest.param(first, marks=[pytest.mark.slow] if first >= SHORT else [])
    for first in range(0, LONG, IN_A_BATCH)
]


class OutOfTimeError(BaseException):
    """Raised by the alarm; nothing catches it on its way."""


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    return make_world(tmp_path_factory.mktemp("fuzz") / "world")


@pytest.fixture
def limits():
    """An alarm after so much computing, and a bound for memory."""

    def ring(*_):
        raise OutOfTimeError

    before, bound = signal.signal(signal.SIGPROF, ring), resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, bound[1]))
    yield
    signal.setitimer(signal.ITIMER_PROF, 0)
    signal.signal(signal.SIGPROF, before)
    resource.setrlimit(resource.RLIMIT_AS, bound)


@pytest.mark.parametrize("first", BATCHES)
def test_hostile_command_lines_end_with_a_message(world, monkeypatch, limits, first):
    monkeypatch.chdir(world)
    monkeypatch.setenv("HOME", str(world))
    monkeypatch.setenv("HF_DATASETS_OFFLINE", "1")
    for number in range(first, first + IN_A_BATCH):
        words = make_words(number, SEED)
        signal.setitimer(signal.ITIMER_PROF, SECONDS)
        result = c4(*words)
        assert isinstance(result.exception, SystemExit | None), spell(words)
        findings = judge(words, result.exit_code, result.stdout, result.stderr)
        assert not findings, f"{findings}: {spell(words)}"


@pytest.mark.slow
@pytest.mark.parametrize("number", range(APART))
def test_hostile_command_lines_end_alike_in_processes_of_their_own(world, tmp_path, number):
    words = make_words(number, SEED)
    try:
        command = [os.fsencode(word) for word in (sys.executable, "-m", "c4.cli", *words)]
    except UnicodeEncodeError:
        pytest.skip("no shell could write this line")
    if any(b"\0" in word or len(word) > 100_000 for word in command):
        pytest.skip("no shell could write this line")
    offline = {"HOME": str(tmp_path), "HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1"}
    done = subprocess.run(
        command, cwd=world, env=os.environ | offline, capture_output=True, timeout=600, check=False
    )
    out, err = (text.decode("utf-8", "surrogateescape") for text in (done.stdout, done.stderr))
    assert not judge(words, done.returncode, out, err), spell(words)


def test_a_command_line_is_made_again_by_its_number_and_seed():
    lines = [make_words(number, SEED) for number in range(50)]
    assert lines == [make_words(number, SEED) for number in range(50)]
    assert lines != [make_words(number, SEED + 1) for number in range(50)]


@pytest.mark.parametrize(
    ("code", "out", "err", "finding"),
    [
        (1, "", "x", "exit code 1"),
        (2, "", "Traceback (most recent call last)", "traceback in the output"),
        (2, "", "[Errno 2] gone", "an error number of the system"),
        (2, "", "out of memory", "out of memory"),
        (0, "\x1b[2J", "", "a control character in the output"),
        (2, "", "", "an error without a word"),
        (0, "{", "", "JSON that no machine can read"),
        (0, "[NaN]", "", "JSON that no machine can read"),
    ],
)
def test_what_is_wrong_is_found(code, out, err, finding):
    assert finding in judge(["runs", "--json"], code, out, err)


def test_json_behind_two_dashes_is_a_pattern_and_no_option():
    assert judge(["tasks", "--lm-eval", "--", "--json"], 0, "no tasks\n", "") == []


def test_every_command_is_tried():
    lines = (make_words(number, 0) for number in range(1000))
    assert {command_of(words) for words in lines} >= {name for name, _ in all_commands()}
