"""Gates by hostile names, and gates that data files name: a file never chooses what is run."""

import os
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from c4.cli.app import app
from c4.errors import ConfigError
from c4.gates.calibration_files import find_calibrations, load_calibration
from c4.gates.gate import ask
from c4.gates.registry import make_gate
from c4.tasks import Family
from tests.store.made import write_calibration

NOT_NAMES = [":b", "..:x", ".x:y", "a:", ":", "a:b:c", "a b:c", "a\0:b", "a:\x1b[2J", "a.:b", "-:-"]
RAISES = {
    "raise SystemExit(3)": "SystemExit: 3",
    "raise SystemExit": "SystemExit",
    "import sys; sys.exit()": "SystemExit",
    "class Gate(:": "SyntaxError",
    "def f(): f()\nf()": "RecursionError",
    "1 / 0": "ZeroDivisionError: division by zero (own_gates.py, line 1)",
    "raise MemoryError": "MemoryError",
    "raise Exception('\\x1b[2J')": "Exception",
    "class Gate:\n    def __init__(self): raise KeyError('gone')": "KeyError: 'gone'",
    "class Gate:\n    def __init__(self, tau): pass": "missing 1 required positional argument",
    "Gate = 3": "has no function fires",
    "Gate = int": "has no function fires",
}


@pytest.fixture
def own_module(tmp_path, monkeypatch):
    """Writes a module of a user's own into the current folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "own_gates", raising=False)
    yield (tmp_path / "own_gates.py").write_text
    sys.modules.pop("own_gates", None)


@pytest.mark.parametrize("name", NOT_NAMES)
def test_what_is_no_module_and_object_is_refused_in_words(name):
    with pytest.raises(ConfigError, match="write module:object, as in my_gates:Calm"):
        make_gate(name)


def test_a_very_long_name_is_not_repeated():
    for name in ("x" * 10**6, f"{'x' * 10**6}:y", f"{'x' * 10**6}:-"):
        with pytest.raises(ConfigError) as refused:
            make_gate(name)
        assert len(str(refused.value)) < 500


@pytest.mark.parametrize("source", RAISES)
def test_whatever_a_module_raises_is_one_error(own_module, source):
    own_module(source)
    with pytest.raises(ConfigError) as refused:
        make_gate("own_gates:Gate")
    assert RAISES[source] in str(refused.value)


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (
            "1 / 0",
            "the gate Gate fails: ZeroDivisionError: division by zero (own_gates.py",
        ),
        ("[True] * 7", "the gate Gate fails: fires must answer each step"),
        ("s.step / 2", "fires must return booleans, not float64; write a comparison"),
        ("None", "fires must return booleans, not None"),
        ("'yes'", "fires must return booleans, not 'yes'"),
        ("s.nothing", "there is no signal 'nothing'"),
        ("s.existz", "there is no signal 'existz'"),
        ("s.confidense", "did you mean confidence?"),
        ("exit(3)", "the gate Gate fails: SystemExit: 3"),
        ("s.step.reshape(\n7, 7)", "shape (7,7) (own_gates.py, line 3)"),
        ("(_ for _ in ()).throw(ValueError('a\\nb'))", "ValueError: a b (own_gates.py"),
        ("s.step.nothing", "the gate Gate fails: AttributeError"),
    ],
)
def test_a_gate_that_fails_while_it_is_asked_names_itself(own_module, signals, answer, message):
    own_module(f"class Gate:\n    def fires(self, s):\n        return {answer}\n")
    with pytest.raises(ConfigError) as refused:
        ask(make_gate("own_gates:Gate"), signals)
    assert message in str(refused.value)


@pytest.fixture
def signals():
    """As much of the signals of three steps as these gates look at."""
    return FewSignals(np.arange(1, 4), np.ones(3, dtype=bool))


@dataclass
class FewSignals:
    step: np.ndarray
    exists: np.ndarray


MARK = "from pathlib import Path\nPath('it-ran').touch()\nclass Gate:\n    fires = None\n"


@pytest.mark.parametrize("gate", ["own_gates:Gate", "own_gates:Gate\x1b[2J", "os:path"])
def test_a_calibration_cannot_choose_which_code_is_run(own_module, tmp_path, gate):
    own_module(MARK)
    frozen = load_calibration(write_calibration(tmp_path / "calibration.json", gate))
    with pytest.raises(ConfigError, match="a file does not choose which code is run"):
        frozen.make(Family.LETTERS)
    with pytest.raises(ConfigError, match="a file does not choose which code is run"):
        frozen.make(Family.LETTERS, named=["cvee"])
    assert "own_gates" not in sys.modules
    assert not (tmp_path / "it-ran").exists()


def test_a_gate_that_the_user_names_beside_the_file_is_made(own_module, tmp_path):
    own_module("class Gate:\n    def fires(self, s):\n        return s.step > 2\n")
    frozen = load_calibration(write_calibration(tmp_path / "calibration.json", "own_gates:Gate"))
    assert type(frozen.make(Family.CODE, named=["own_gates:Gate"])).__name__ == "Gate"


@pytest.mark.parametrize("value", [None, [0.5, 0.7], {"a": 1}])
def test_a_calibrated_parameter_is_a_number_or_a_word(tmp_path, value):
    path = write_calibration(tmp_path / "calibration.json", "cvee", tau=value)
    with pytest.raises(ConfigError, match="neither a number nor a word"):
        load_calibration(path)


@pytest.mark.parametrize("name", ["name", "family", "self", "tua"])
def test_a_parameter_by_the_name_of_something_else_is_no_parameter(name):
    with pytest.raises(ConfigError, match=f"no parameter of cvee named '{name}'"):
        make_gate("cvee", **{name: 1.0})


@pytest.fixture
def old_run(tmp_path):
    """A copy of the newest of the runs that are kept as test data."""
    (*_, newest) = sorted((Path(__file__).parents[1] / "data" / "runs").glob("v*"))
    return shutil.copytree(newest, tmp_path / "runs")


@pytest.mark.parametrize("target", ["/dev/zero", "/dev/full"])
def test_a_device_is_no_calibration(tmp_path, target):
    (tmp_path / "endless.json").symlink_to(target)
    os.mkfifo(tmp_path / "pipe.json")
    for name in ("endless.json", "pipe.json"):
        with pytest.raises(ConfigError, match="this is not a file"):
            load_calibration(tmp_path / name)
    assert find_calibrations(tmp_path) == []


COMMANDS = [
    ["replay", "--config"],
    ["run", "--method", "cvee", "--task", "math", "--config"],
    ["bench", "--method", "cvee", "--task", "math", "--config"],
    ["report", "--calibration"],
    ["figures", "--calibration"],
]


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command[0])
def test_no_command_runs_what_a_file_names(own_module, tmp_path, old_run, command):
    own_module(MARK)
    path = write_calibration(tmp_path / "calibration.json", "own_gates:Gate")
    runs = ["--out", "out"] if command[0] in ("run", "bench") else ["--runs", str(old_run)]
    result = CliRunner().invoke(app, [*command, str(path), *runs])
    assert result.exception is None or isinstance(result.exception, SystemExit)
    assert "own_gates" not in sys.modules
    assert not (tmp_path / "it-ran").exists()
    if command[0] == "replay":
        assert "--gate own_gates:Gate" in " ".join(result.stderr.split())
        CliRunner().invoke(app, [*command, str(path), *runs, "--gate", "own_gates:Gate"])
        assert (tmp_path / "it-ran").exists()
