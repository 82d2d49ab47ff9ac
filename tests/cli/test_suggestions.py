"""Every command that a table suggests works when it is pasted."""

import json
import re
import shlex

import pytest
from typer.testing import CliRunner

from c4.cli.app import app

PYTHON = """
from c4.tasks import Example, Task, answers
ROWS = [{"q": f"What is {i} + {i}?", "a": str(2 * i)} for i in range(1, 7)]
TASK = Task(name="sums", read=lambda row: Example(row["q"], row["a"]), rows=ROWS,
            **answers("number"))
"""
YAML = "data_files: rows.jsonl\ndoc_to_text: '{{q}}'\ndoc_to_target: a\nextractor: number\n"
ROWS = [{"q": f"{i}+{i}?", "a": 2 * i} for i in range(1, 5)]
SVAMP = [
    {"Body": f"Ann has {i} cats.", "Question": "How many cats has Ann?", "Answer": str(i)}
    for i in range(1, 5)
]
GATES = """
from dataclasses import dataclass
from c4.gates import parameter

@dataclass(frozen=True)
class Calm:
    nats: float = parameter(0.3, high=1.0)
    def fires(self, s):
        return (s.step >= 3) & (s.changed <= self.nats)
"""
FILES = {
    "own/my_task.py": PYTHON,
    "own/my_task.yaml": YAML,
    "own/rows.jsonl": "\n".join(map(json.dumps, ROWS)),
    "own/svamp rows.jsonl": "\n".join(map(json.dumps, SVAMP)),
    "own/my_gates.py": GATES,
    "own/my_prompt.txt": "Please: {{prompt}}",
}
SMALL = ["--gen-length", "16", "--steps", "16", "--block-length", "8"]
KINDS = {
    "a Python task": ["--task", "own/my_task.py:TASK"],
    "a YAML task": ["--task", "own/my_task.yaml"],
    "rows and a wording of one's own": [
        *("--task", "svamp", "--source", "own/svamp rows.jsonl", "--prompt", "own/my_prompt.txt")
    ],
}


def c4(*words):
    result = CliRunner().invoke(app, [str(word) for word in words])
    assert result.exit_code == 0, f"c4 {shlex.join(map(str, words))}\n{result.output}"
    return result.stdout


@pytest.fixture
def own(tmp_path, monkeypatch):
    """A folder in which everything of the user's own stands in a folder below."""
    (tmp_path / "own").mkdir()
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def suggested(options):
    """The commands that the main table names, and its rows."""
    (table,) = json.loads(c4("report", "main", "--json", "--all", *options))
    notes = [re.search(r"\((c4 (?:run|bench|grade) .*)\)$", note) for note in table["missing"]]
    return [note[1] for note in notes if note], table["rows"]


@pytest.mark.parametrize("kind", KINDS)
def test_commands_that_a_report_suggests_fill_in_what_is_missing(own, kind):
    recorded = KINDS[kind]
    c4("record", *recorded, *SMALL, "--n", 3, "--no-grade")
    shown = [*recorded[:2], "--gate", "own/my_gates.py:Calm"]
    commands, rows = suggested(shown)
    assert any(row["accuracy"] is None for row in rows)
    assert {command.split()[1] for command in commands} == {"run", "bench", "grade"}
    for command in commands:
        c4(*shlex.split(command)[1:])
    commands, rows = suggested(shown)
    assert {row["n"] for row in rows} == {3}
    assert all(row["accuracy"] is not None for row in rows)
    for command in commands:  # what has been run since is timed
        assert command.startswith("c4 bench")
        c4(*shlex.split(command)[1:])
    commands, rows = suggested(shown)
    assert not commands
    assert all(row["tps"] for row in rows)
    assert any("my_gates.py:Calm" in row["method"] for row in rows)
