"""What installed packages offer by entry point works by its short name, and harms nothing."""

import json
from contextlib import chdir

import pytest
from typer.testing import CliRunner

from c4.cli import complete
from c4.cli.app import app
from c4.plugins import offered

MODULE = """
from dataclasses import dataclass
from c4.decode import Rule, accept
from c4.gates import parameter
from c4.tasks import Candidate, Example, Task, answers

@dataclass(frozen=True)
class Late:
    steps: int = parameter(5, low=1, high=9)
    def fires(self, s):
        return s.step >= self.steps

class Elapsed:
    signals = ("toy-elapsed",)
    def fires(self, s):
        return s.toy_elapsed >= 5

def elapsed(s, cells):
    return s.step

def anything(text, choices=()):
    return Candidate("x", 0, len(text))

@dataclass(frozen=True)
class Greedy(Rule):
    def choose(self, places, reading):
        return accept(places[:1], places, reading)

ROWS = [{"q": f"{i} + {i}?", "a": str(2 * i)} for i in range(1, 7)]
TASK = Task(name="toy-sums", read=lambda row: Example(row["q"], row["a"]), rows=ROWS,
            **answers("number"))

def always(example, answer, text):
    return True

def source(name):
    if name == "text":
        return "no task"
    return Task(name=f"toy:{name}", read=lambda row: Example(row["q"], row["a"]),
                rows=ROWS[: int(name)], **answers("number"))
"""
SOUND = {
    "gates": "toy-late = toypkg:Late",
    "rules": "toy-greedy = toypkg:Greedy",
    "tasks": "toy-sums = toypkg:TASK",
    "graders": "toy-always = toypkg:always",
    "extractors": "toy-any = toypkg:anything",
    "signals": "toy-elapsed = toypkg:elapsed",
    "task_sources": "toy = toypkg:source",
}
BROKEN = {
    "gates": "bad-gate = no_such_module:Late",
    "rules": "bad-rule = toypkg:Gredy",
    "tasks": "bad-task = no_such_module:TASK",
    "graders": "bad-grader = no_such_module:near",
    "extractors": "bad-reader = no_such_module:total",
    "signals": "bad-signal = no_such_module:flux",
    "task_sources": "bad-source = no_such_module:find",
}
SMALL = ["--gen-length", "16", "--steps", "16", "--block-length", "8"]


def install(site, name, points):
    """The files by which an installed package is known."""
    facts = site / f"{name}-1.0.dist-info"
    facts.mkdir()
    (facts / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    groups = (f"[c4.{group}]\n{point}\n" for group, point in points.items())
    (facts / "entry_points.txt").write_text("".join(groups))


def c4(*words):
    return CliRunner().invoke(app, list(words))


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """A folder of installed packages, one sound and one broken, and recordings beside it."""
    made = tmp_path_factory.mktemp("site")
    (made / "toypkg.py").write_text(MODULE)
    install(made, "toy", SOUND)
    install(made, "brokentoy", BROKEN)
    with pytest.MonkeyPatch.context() as patch, chdir(made):
        patch.syspath_prepend(made)
        offered.cache_clear()
        for task in ("toy-sums", "mmlu"):
            done = c4("record", "--task", task, "--n", "2", *SMALL)
            assert done.exit_code == 0, done.output
    offered.cache_clear()
    return made


@pytest.fixture
def installed(site, monkeypatch):
    monkeypatch.syspath_prepend(site)
    monkeypatch.chdir(site)
    offered.cache_clear()
    yield site
    offered.cache_clear()


@pytest.mark.parametrize(
    "command",
    [
        "replay --task toy-sums --gate toy-late --grader toy-always",
        "calibrate --task mmlu --gate toy-late --tolerance 100 --out late.json",
        "run --task mmlu --n 1 --method toy-greedy+toy-late --method toy-greedy --method toy-late",
        "figures phase-diagram --task toy-sums --gate toy-late --format png",
        "report main --task toy-sums --gate toy-late --grader toy-always",
        "view runs --html page.html --task toy-sums --gate toy-late",
        "replay --task toy-sums --gate toypkg:Elapsed --reading toy-any",
        "run --task mmlu --n 1 --method toypkg:Elapsed --reading toy-any",
        "figures trace --task toy-sums --signal toy-elapsed --reading toy-any --format png",
        "runs --check",
        "tasks",
    ],
)
def test_what_a_package_offers_works_by_its_short_name(installed, command):
    words = command.split()
    done = c4(*words, *(SMALL if words[0] == "run" else ()))
    assert done.exit_code == 0, done.output


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("replay --task mmlu --gate bad-gate", "the gate 'bad-gate' that the package brokentoy"),
        ("replay --task bad-task", "the task 'bad-task' that the package brokentoy offers"),
        ("replay --task bad-source:x", "the task source 'bad-source' that the package brokentoy"),
        ("replay --task toy:few", "the task source toy fails: ValueError: invalid literal"),
        ("replay --task toy:text", "toy:text is no task: its source must return a c4.tasks.Task"),
        ("replay --task mmlu --grader bad-grader", "the package brokentoy offers as no_such_modul"),
        ("replay --task mmlu --reading bad-reader", "the extractor 'bad-reader' that the package"),
        (
            "figures trace --task mmlu --signal bad-signal",
            "the signal 'bad-signal' that the",
        ),
        ("run --task mmlu --n 1 --method bad-rule", "the rule 'bad-rule' that the package brokent"),
    ],
)
def test_what_a_package_breaks_names_the_package(installed, command, said):
    done = c4(*command.split())
    assert done.exit_code == 2
    assert said in done.stderr


def test_a_recording_of_a_source_s_task_says_that_it_is_not_c4_s(installed, tmp_path):
    done = c4("record", "--task", "toy:2", *SMALL, "--out", str(tmp_path))
    assert done.exit_code == 0, done.output
    assert "--task toy:2" in " ".join(c4("replay", "--runs", str(tmp_path)).stderr.split())
    assert c4("replay", "--runs", str(tmp_path), "--task", "toy:2").exit_code == 0


def test_all_names_are_listed_and_completed_without_loading_anything(installed):
    found = json.loads(c4("plugins", "--json").stdout)
    offers = {(one["kind"], one["name"], one["package"], one["object"]) for one in found}
    assert ("gate", "cvee", "c4", None) in offers
    assert ("gate", "toy-late", "toy", "toypkg:Late") in offers
    assert ("task", "bad-task", "brokentoy", "no_such_module:TASK") in offers
    assert {one["kind"] for one in found} == {
        *("task", "gate", "signal", "rule", "extractor", "grader")
    }
    assert "from installed packages: brokentoy, toy" in c4("plugins").stdout
    assert "bad-task, toy-sums" in c4("tasks").stdout
    assert complete.complete_gate("toy-") == ["toy-late"]
    assert complete.complete_task("toy-") == ["toy-sums"]
    assert complete.complete_grader("toy-") == ["toy-always"]
    assert complete.complete_reading("toy-") == ["toy-any"]
    assert complete.complete_signal("toy-") == ["toy-elapsed"]
    assert complete.complete_method("toy-") == ["toy-greedy+"]
