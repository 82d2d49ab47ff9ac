"""Some of the command lines that `benchmarks/fuzz_commands.py` tries by the thousand."""

import importlib.util
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "fuzz_commands.py"
SEED = 20260101
LINES = 150
IN_A_BATCH = 10


def load_script():
    spec = importlib.util.spec_from_file_location("fuzz_commands", SCRIPT)
    script = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = script  # its dataclasses look for their module
    spec.loader.exec_module(script)
    return script


fuzz = load_script()


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    return fuzz.make_world(tmp_path_factory.mktemp("fuzz") / "world")


@pytest.mark.parametrize("first", range(0, LINES, IN_A_BATCH))
def test_hostile_command_lines_end_in_words(world, monkeypatch, first):
    monkeypatch.chdir(world)
    monkeypatch.setenv("HOME", str(world))
    monkeypatch.setenv("HF_DATASETS_OFFLINE", "1")
    for number in range(first, first + IN_A_BATCH):
        words = fuzz.make_words(number, SEED)
        result = fuzz.invoke(words)
        assert isinstance(result.exception, SystemExit | None), fuzz.spell(words)
        findings = fuzz.judge(words, result.exit_code, result.stdout, result.stderr)
        assert not findings, f"{findings}: {fuzz.spell(words)}"


def test_a_command_line_is_made_again_by_its_number_and_seed():
    lines = [fuzz.make_words(number, SEED) for number in range(50)]
    assert lines == [fuzz.make_words(number, SEED) for number in range(50)]
    assert lines != [fuzz.make_words(number, SEED + 1) for number in range(50)]


@pytest.mark.parametrize(
    ("code", "out", "err", "finding"),
    [
        (1, "", "x", "exit code 1"),
        (2, "", "Traceback (most recent call last)", "traceback in the output"),
        (2, "", "[Errno 2] gone", "an error number of the system"),
        (2, "", "memory ran out", "memory ran out"),
        (0, "\x1b[2J", "", "a control character in the output"),
        (2, "", "", "an error without a word"),
        (0, "{", "", "JSON that no machine can read"),
        (0, "[NaN]", "", "JSON that no machine can read"),
    ],
)
def test_what_is_wrong_is_found(code, out, err, finding):
    assert finding in fuzz.judge(["runs", "--json"], code, out, err)


def test_json_behind_two_dashes_is_a_pattern_and_no_option():
    assert fuzz.judge(["tasks", "--lm-eval", "--", "--json"], 0, "no tasks\n", "") == []


def test_every_command_is_tried():
    lines = (fuzz.make_words(number, 0) for number in range(1000))
    tried = {fuzz.command_of(words) for words in lines}
    assert tried >= {name for name, _ in fuzz.all_commands()}
