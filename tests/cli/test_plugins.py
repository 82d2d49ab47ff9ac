"""Every kind of plug-in passes through every command that accepts its built-in sibling."""

import json
import shutil
from contextlib import chdir
from pathlib import Path

import polars as pl
import pytest

from c4.store.runs import find_runs, open_run
from c4.tasks import AnswerReading
from c4.tasks.reading.extractors import REGISTRY as EXTRACTOR_NAMES
from c4.tasks.reading.extractors import find_style
from tests.cli.own_code import ROWS, SMALL, TASKS
from tests.commands import c4

GATES = """
from dataclasses import dataclass
from c4.gates import parameter

@dataclass(frozen=True)
class Calm:
    nats: float = parameter(0.3, high=1.0)
    def fires(self, s):
        return (s.step >= 3) & (s.changed <= self.nats)

@dataclass(frozen=True)
class Quiet:
    signals = ("my_signals.py:flux",)
    most: float = parameter(0.1, high=1.0)
    def fires(self, s):
        return (s.step >= 3) & (s.flux <= self.most)

class Still:
    wants_cells = True
    def fires(self, s, cells):
        return cells.confidence.min(axis=1) > 0.2
"""
SIGNALS = """
import numpy as np

def flux(s, cells):
    changed = cells.token[1:] != cells.token[:-1]
    return np.concatenate([[1.0], changed.mean(axis=1)])
"""
EXTRACTORS = """
import re
from c4.tasks import Candidate, Finder

def capital(text, choices=()):
    found = re.search(r"[A-Z]", text)
    return found and Candidate(found[0].lower(), found.start(), found.end())

LOWER = Finder(find=capital, normal=str.lower, search="first5")
"""
RULES = """
from dataclasses import dataclass
from c4.decode import Rule, accept

@dataclass(frozen=True)
class Greedy(Rule):
    tau: float = 0.5
    def choose(self, places, reading):
        return accept(places[reading.confidence[places] > self.tau], places, reading)
"""
YAML = "data_files: rows.jsonl\ndoc_to_text: '{{q}}'\ndoc_to_target: a\nextractor: number\n"

GATE, CELLS_GATE, SIGNAL_GATE = "my_gates.py:Calm", "my_gates:Still", "my_gates.py:Quiet"
RULE, PYTHON, YAML_TASK = "my_rules.py:Greedy", "my_task.py:TASK", "my_task.yaml"
OWN_GATES = (GATE, CELLS_GATE, SIGNAL_GATE)
REPLAYED = [
    "replay --gate {}",
    "report main --gate {}",
    "figures phase-diagram gates trace text --format png --gate {}",
    "view runs --html page.html --n 1 --gate {}",
]
DECODED = [
    "run --task mmlu --n 1 --method {}",
    "run --task mmlu --n 1 --method wino+{}",
    "bench --task mmlu --n 1 --warmups 0 --passes 1 --method {}",
]
TASKED = [
    "record --n 2 --task {}",
    "run --n 1 --method c4 --task {}",
    "verify --n 1 --gate cvee --task {}",
    "bench --n 1 --warmups 0 --passes 1 --method cvee --task {}",
    "replay --gate cvee --task {}",
    "calibrate --gate cvee --set tau=0.5 --set p_min=1 --out of-task.json --task {}",
    "report main --task {}",
    "figures stabilization totals --format png --task {}",
    "view runs --html page.html --n 1 --task {}",
]
GRADED = [
    "record --task mmlu --n 1 --out graded --grader {}",
    "run --task mmlu --method cvee --n 1 --out graded --grader {}",
    "verify --task mmlu --n 1 --gate cvee --grader {}",
    "replay --gate cvee --grader {}",
    "calibrate --gate cvee --set tau=0.5 --set p_min=1 --task mmlu --out graded.json --grader {}",
    "replay --config graded.json --grader {}",
    "grade runs/model=tiny/task=mmlu/method=baseline --grader {}",
    "report main --grader {}",
    "figures totals --format png --grader {}",
    "view runs --html page.html --n 1 --grader {}",
    "runs --check",
]
READ = [command.replace("--grader", "--reading").replace("graded", "read") for command in GRADED]


def slow(*case):
    """The same promise again, in another command or with a plug-in of another form."""
    return pytest.param(*case, marks=pytest.mark.slow)


CASES = [
    *((command, GATE) for command in [*REPLAYED, *DECODED]),
    *((command, gate) for command in (REPLAYED[0], DECODED[0]) for gate in OWN_GATES[1:]),
    *(slow(command, gate) for command in REPLAYED[1:] for gate in OWN_GATES[1:]),
    *(slow(command, gate) for command in DECODED[1:] for gate in OWN_GATES[1:]),
    *(("verify --task mmlu --n 1 --gate {}", gate) for gate in OWN_GATES),
    ("calibrate --task mmlu --tolerance 100 --out calm.json --gate {}", GATE),
    ("calibrate --task mmlu --tolerance 100 --out quiet.json --gate {}", SIGNAL_GATE),
    ("figures trace --format png --signal entropy --signal {}", "my_signals.py:flux"),
    ("replay --gate {} --config calm.json", GATE),
    ("figures phase-diagram --format png --gate {} --config calm.json --set nats=0.5", GATE),
    ("run --task mmlu --n 1 --config calm.json --method {}", GATE),
    *((command, RULE) for command in (DECODED[0], DECODED[2])),
    ("run --task mmlu --n 1 --method {}+cvee --set Greedy.tau=0.4", RULE),
    *((command, PYTHON) for command in TASKED),
    *((command, YAML_TASK) for command in TASKED[:2]),
    *(slow(command, YAML_TASK) for command in TASKED[2:]),
    ("grade runs/model=tiny/task=sums/method=baseline --all --task {}", PYTHON),
    ("grade runs/model=tiny/task=my_task/method=baseline --all", YAML_TASK),
    *((command, "my_graders.py:never") for command in GRADED),
    *((command, "my_extractors.py:LOWER") for command in READ[:6]),
    *(slow(command, "my_extractors.py:LOWER") for command in READ[6:]),
    ("replay --gate cvee --reading {}", "my_extractors:capital"),
    ("replay --gate cvee --reading {}", "number"),
    ("record --task mmlu --n 1 --out worded --prompt {}", "my_prompt.txt"),
    ("run --task mmlu --method c4 --n 1 --out worded --prompt {}", "my_prompt.txt"),
    ("verify --task mmlu --n 1 --gate cvee --prompt {}", "my_prompt.txt"),
]


MADE_FIRST = [
    "record --task mmlu --n 3 --skip 39",
    f"record --n 2 --task {PYTHON}",
    f"record --n 2 --task {YAML_TASK}",
    f"calibrate --task mmlu --tolerance 100 --out calm.json --gate {GATE}",
    "calibrate --gate cvee --set tau=0.5 --set p_min=1 --task mmlu --tolerance 100 "
    "--grader my_graders.py:never --out graded.json",
    "calibrate --gate cvee --set tau=0.5 --set p_min=1 --task mmlu --tolerance 100 "
    "--reading my_extractors.py:LOWER --out read.json",
]
"""What the commands below find in their folder."""


def unwrapped(text):
    return " ".join(text.split())


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with a plug-in of every kind, and a recording."""
    made = tmp_path_factory.mktemp("plugins")
    files = {"my_gates.py": GATES, "my_rules.py": RULES, "my_task.py": TASKS, "my_task.yaml": YAML}
    files["my_graders.py"] = "def never(example, answer, text):\n    return False\n"
    files |= {"my_signals.py": SIGNALS, "my_extractors.py": EXTRACTORS}
    files |= {"rows.jsonl": ROWS, "my_prompt.txt": "Please: {{prompt}}"}
    for name, text in files.items():
        (made / name).write_text(text)
    with chdir(made):
        for command in MADE_FIRST:
            words = command.split()
            result = c4(*words, *(SMALL if words[0] == "record" else ()))
            assert result.exit_code == 0, result.output
    return made


NAMES_OF_TASKS = {PYTHON: "sums", YAML_TASK: "my_task"}
SHOWN = {"figures": "figures-out/*.csv", "view": "page.html", "calibrate": "*.json"}
"""Where commands write what they show, beside what they print."""


def said(words, result):
    """What a command has printed, and what it has written for people."""
    written = sorted(Path().glob(SHOWN[words[0]])) if words[0] in SHOWN else []
    return result.output + "".join(path.read_text(encoding="utf-8") for path in written)


def accuracies(value):
    """Every accuracy in what a command prints for machines, or in the data of a figure."""
    if isinstance(value, dict):
        own = [value["accuracy"]] if "accuracy" in value else []
        return own + [found for inside in value.values() for found in accuracies(inside)]
    return (
        [found for inside in value for found in accuracies(inside)]
        if isinstance(value, list)
        else []
    )


@pytest.mark.parametrize(("command", "plugin"), CASES)
def test_a_plug_in_passes_wherever_its_sibling_does(folder, monkeypatch, command, plugin):
    monkeypatch.chdir(folder)
    monkeypatch.syspath_prepend(folder)
    shutil.rmtree("figures-out", ignore_errors=True)
    words = command.format(plugin).split()
    decodes = words[0] in ("record", "run", "bench", "verify")
    graded = ["--json"] if plugin.startswith("my_graders") else []
    result = c4(*words, *(SMALL if decodes else ()), *graded)
    assert result.exit_code == 0, result.output
    if graded:  # by who calls nothing right
        found = accuracies(json.loads(result.stdout))
        for path in Path("figures-out").glob("*.csv"):
            found += pl.read_csv(path)["accuracy"].to_list()
        assert found or words[0] in ("calibrate", "runs", "verify", "view")
        assert set(found) <= {0, None}
    elif not plugin.startswith(("my_extractors", "my_prompt", "number")):
        name = NAMES_OF_TASKS.get(plugin, plugin.rpartition(":")[2])
        shown = said(words, result)
        assert name in shown, f"{name} is not in: {shown[:2000]}"


def test_tables_leave_out_what_a_gate_did_before_it_was_edited(folder, monkeypatch):
    monkeypatch.chdir(folder)
    gate = Path("late.py")
    gate.write_text("class Late:\n    def fires(self, s):\n        return s.step >= 5\n")
    runs = ["run", "--task", "mmlu", "--n", "1", "--out", "edited", "--method", "late.py:Late"]
    assert c4(*runs, "--method", "baseline", *SMALL).exit_code == 0
    report = ["report", "main", "--runs", "edited", "--gate", "late.py:Late"]
    assert "late.py:Late" in c4(*report).stdout
    gate.write_text(gate.read_text().replace("5", "9"))
    after = c4(*report)
    assert "| late.py:Late |" not in after.stdout
    assert "method=late.py%3ALate was made by an earlier version of its gate" in unwrapped(
        after.stderr
    )


def test_grades_of_a_user_s_own_grader_stand_beside_c4_s(folder, monkeypatch):
    monkeypatch.chdir(folder)
    run = "runs/model=tiny/task=mmlu/method=baseline"
    usual = json.loads(c4("grade", run, "--json").stdout)
    own = json.loads(c4("grade", run, "--json", "--grader", "my_graders.py:never").stdout)
    assert own["accuracy"] == 0.0
    assert json.loads(c4("grade", run, "--json").stdout)["accuracy"] == usual["accuracy"]
    nearest = c4("grade", run, "--grader", "exakt")
    assert "did you mean exact?" in nearest.stderr


def test_answers_under_a_user_s_own_extractor_stand_beside_c4_s(folder, monkeypatch):
    monkeypatch.chdir(folder)
    place = "runs/model=tiny/task=mmlu/method=baseline"
    own = json.loads(c4("grade", place, "--json", "--reading", "my_extractors.py:LOWER").stdout)
    usual = json.loads(c4("grade", place, "--json").stdout)
    assert own["accuracy"] == usual["accuracy"] > 0  # the same letters, in another form
    reading = AnswerReading(find_style("my_extractors.py:LOWER"))
    assert {row.answer for row in open_run(place, reading).rows()} <= set("abcd")
    assert {row.answer for row in open_run(place).rows()} <= set("ABCD")
    assert "did you mean boxed?" in c4("replay", "--reading", "boxd").stderr
    refused = c4("run", "--task", "mmlu", "--method", "cvee", "--reading", "function")
    assert "answers of mmlu are no programs" in refused.stderr
    EXTRACTOR_NAMES.loaded.clear()  # as in a new process
    unnamed = c4("replay", "--config", "read.json")
    assert "name it: --reading my_extractors.py:LOWER" in unnamed.stderr


def test_nothing_is_said_of_tasks_that_nobody_asked_for(folder, monkeypatch):
    monkeypatch.chdir(folder)
    for command in ("replay --gate cvee --task mmlu", "report main --task mmlu"):
        asked = c4(*command.split())
        assert asked.exit_code == 0, asked.output
        assert "passed over" not in asked.stderr
    everything = c4("replay", "--gate", "cvee")
    assert "as when it was recorded, as in --task my_task.py:TASK" in unwrapped(everything.stderr)


def test_reading_what_plug_ins_made_loads_none_of_them(folder, monkeypatch):
    monkeypatch.chdir(folder)
    for run in map(open_run, find_runs("runs")):
        assert repr(run)
    assert c4("runs").exit_code == 0
    assert c4("runs", "--check").exit_code == 0
