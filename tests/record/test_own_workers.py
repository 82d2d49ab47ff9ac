"""Workers load whatever is the user's own by the names that the user typed."""

import json

import pytest
from typer.testing import CliRunner

from c4.cli.app import app

FILES = {
    "own_parts.py": """
from dataclasses import dataclass
from c4.decode import Rule, accept
from c4.tasks import Candidate, Example, Task, answers

ROWS = [{"q": f"{i} + {i}?", "a": str(2 * i)} for i in range(1, 7)]
TASK = Task(name="sums", read=lambda row: Example(row["q"], row["a"]), rows=ROWS,
            **answers("number"))

def elapsed_steps(s, cells):
    return s.step

class Late:
    signals = ("own_parts.py:elapsed_steps",)
    def fires(self, s):
        return s.elapsed_steps >= 5

@dataclass(frozen=True)
class Greedy(Rule):
    def choose(self, places, reading):
        return accept(places[:1], places, reading)

def anything(text, choices=()):
    return Candidate("x", 0, len(text))

def always(example, answer, text):
    return True
""",
    "own.yaml": "task: own_yaml\ndata_files: rows.jsonl\ndoc_to_text: '{{q}}'\n"
    "doc_to_target: a\nextractor: number\n",
    "rows.jsonl": "\n".join(json.dumps({"q": f"{i}?", "a": i}) for i in range(4)),
}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    made = tmp_path / "given here"
    made.mkdir()
    for name, text in FILES.items():
        (made / name).write_text(text)
    monkeypatch.chdir(made)
    return made


def c4(*words):
    return CliRunner().invoke(app, [*words, "--json"])


@pytest.mark.parametrize("engine", ["local", "slurm"])
def test_workers_load_what_the_user_named(folder, random_llada, engine):
    """A path relative to the folder, a YAML file, a module, an extractor and a grader."""
    words = ["--engine", engine, "--grader", "./own_parts.py:always"]
    words += ["--slurm", "cluster=local"] if engine == "slurm" else []
    words += ["--reading", "own_parts.py:anything"]
    decoded = [*words, "--n", "2", "--model", str(random_llada), "--device", "cpu"]
    method = ["--method", "own_parts:Greedy+own_parts.py:Late"]
    tasks = ["--task", "own_parts.py:TASK", "--task", "own.yaml"]
    done = c4("run", *tasks, *method, *decoded)
    assert done.exit_code == 0, done.output
    rows = json.loads(done.stdout)
    assert [(row["task"], row["n"], row["steps"]) for row in rows] == [
        ("sums", 2, 5.0),
        ("own_yaml", 2, 5.0),
    ]
    assert {row["accuracy"] for row in rows} == {1.0}  # something is found, and that is right
    graded = c4("grade", rows[0]["folder"], "--all", *words, "--task", "own_parts.py:TASK")
    assert graded.exit_code == 0, graded.output
    assert json.loads(graded.stdout)["accuracy"] == rows[0]["accuracy"]
