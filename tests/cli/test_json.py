"""What machines get: one JSON document on stdout from every command that reports something."""

import json
import math
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.main import get_command
from typer.testing import CliRunner

from c4.cli.app import app
from c4.errors.text import visible_json
from tests.analysis.exchange.foreign import SETTLES_LATE, save_prophet
from tests.analysis.exchange.standin import standing_in

pytestmark = pytest.mark.filterwarnings("ignore:Use 'content=:DeprecationWarning")  # of the hub

DATA = Path(__file__).parents[1] / "data" / "runs" / "v3"
RUN = "runs/model=tiny/task=mmlu/method=baseline"
SMALL = "--task mmlu --n 1"
LINES = {
    "record": (f"{SMALL} --out new", "--task nope"),
    "run": (f"--method c4 {SMALL} --out new", f"--method nope {SMALL}"),
    "bench": (f"--method baseline {SMALL} --warmups 0 --passes 1", f"--method nope {SMALL}"),
    "replay": ("--gate cvee --out decisions.parquet", "--runs nowhere"),
    "calibrate": ("--gamma 2", "--runs nowhere"),
    "verify": (f"{SMALL} --gate cvee", "--task nope"),
    "report": ("", "--runs nowhere"),
    "figures": ("stabilization --format png", "--runs nowhere"),
    "view": ("runs --html look.html", "nowhere --html look.html"),
    "grade": (RUN, "nowhere"),
    "runs": ("", "--repair nowhere"),
    "import": ("prophet hist --figure settled.png", "prophet nowhere"),
    "export": (RUN, "nowhere"),
    "push": (f"{RUN} somebody/letters", "nowhere somebody/letters"),
    "pull": ("somebody/letters --out pulled", "somebody/nothing"),
    "tasks": ("", "--nope"),
    "plugins": ("", "--nope"),
    "plugins check": ("cvee cctc", "nope"),
    "models list": ("", "--nope"),
    "models eval": (f"tiny {SMALL} --out new", "nope"),
}
"""For every command, a line that reports something and one that is refused."""
ELSEWHERE = {"demo": "takes minutes; its --json is tried by test_demo.py"}
PLACES = {"out", "folder", "figure"}
"""Keys that name what was written."""
SHARES = {"accuracy", "full_accuracy", "saving", "fired", "premature", "identical", "located", "cv"}
"""Keys of numbers from 0 to 1, whichever command prints them."""


def commands(group=None, prefix="") -> dict:
    """Every command of the app by its full name."""
    found = {}
    for name, command in (group or get_command(app)).commands.items():
        nested = hasattr(command, "commands")
        if not nested or command.invoke_without_command:
            found[f"{prefix}{name}"] = command
        if nested:
            found |= commands(command, f"{name} ")
    return found


def c4(name, line):
    return CliRunner().invoke(app, [*name.split(), *line.split(), "--json"])


def refuse_constant(word):
    raise AssertionError(f"{word} is no JSON")


def read_document(text):
    """The one document in a text, which is read as strictly as machines read it."""
    assert text.isascii()
    assert text.count("\n") == 1
    return json.loads(text, parse_constant=refuse_constant)


def entries(value, key=None) -> Iterator[tuple]:
    """Every value in a document with its key."""
    yield key, value
    if isinstance(value, dict):
        for name, item in value.items():
            yield from entries(item, name)
    if isinstance(value, list):
        for item in value:
            yield from entries(item, key)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with two runs, what others published, and a hub that has one of the runs."""
    monkeypatch.chdir(tmp_path)
    shutil.copytree(DATA, tmp_path / "runs")
    (tmp_path / "empty").mkdir()
    save_prophet(tmp_path / "hist" / "question_0003_steps_004.pt", SETTLES_LATE)
    with standing_in(monkeypatch, tmp_path / "cache"):
        yield tmp_path


def test_every_command_is_tried_here_or_elsewhere():
    assert commands().keys() == LINES.keys() | ELSEWHERE.keys()


@pytest.mark.parametrize("name", commands())
def test_every_command_takes_json(name):
    assert "--json" in [word for option in commands()[name].params for word in option.opts]


@pytest.mark.parametrize("name", LINES)
def test_stdout_is_one_document_that_names_what_was_written(folder, name):
    if name == "pull":
        assert c4("push", LINES["push"][0]).exit_code == 0
    result = c4(name, LINES[name][0])
    assert result.exit_code == 0, result.output
    for key, value in entries(read_document(result.stdout)):
        if key in PLACES and value is not None:
            assert Path(value).exists(), (key, value)
        if key in SHARES and isinstance(value, float | int):
            assert 0 <= value <= 1, (key, value)
        if isinstance(value, str):
            assert not value.startswith(("{", "[")), f"JSON inside a string: {key}"
            assert "[/" not in value, f"markup: {value}"


@pytest.mark.parametrize("name", LINES)
def test_an_error_leaves_stdout_empty(folder, name):
    result = c4(name, LINES[name][1])
    assert result.exit_code == 2
    assert result.stdout == ""
    assert "error: " in result.stderr


def test_no_runs_are_an_empty_list(folder):
    result = c4("runs", "--runs empty")
    assert (result.exit_code, result.stdout) == (0, "[]\n"), result.output


def test_numbers_that_json_lacks_are_null_and_text():
    value = {"a": [math.nan, 1.5], "b": (math.inf, -math.inf), "c": Path("x")}
    assert read_document(visible_json(value) + "\n") == {
        "a": [None, 1.5],
        "b": ["inf", "-inf"],
        "c": "x",
    }
