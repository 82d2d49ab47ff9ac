"""Names that users type: of recordings' tasks, of objects in files, of halves of methods."""

import json
from contextlib import chdir
from dataclasses import asdict
from pathlib import Path

import pytest

from c4.store.manifest import read_manifest
from tests.cli.own_code import ROWS, SMALL, TASKS
from tests.commands import c4

GATES = """
from dataclasses import dataclass
from c4.gates import parameter

@dataclass(frozen=True)
class Calm:
    steps: int = parameter(3, low=1, high=9)
    def fires(self, s):
        return s.step >= self.steps
"""
RULES = """
from dataclasses import dataclass
from c4.decode import Rule

@dataclass(frozen=True)
class Greedy(Rule):
    tau: float = 0.5
"""
YAML = """
task: sums_yaml
data_files: rows.jsonl
doc_to_text: '{{q}}'
doc_to_target: a
extractor: number
shape: {length: 16, steps: 16, block_length: 8}
"""
FILES = {
    "my_gates.py": GATES,
    "my_rules.py": RULES,
    "my_task.py": TASKS,
    "my_task.yaml": YAML,
    "rows.jsonl": ROWS,
}


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    """A folder with recordings of a YAML task, of a Python task and of c4's own."""
    made = tmp_path_factory.mktemp("names")
    for name, text in FILES.items():
        (made / name).write_text(text)
    with chdir(made):
        for task in ("my_task.yaml", "my_task.py:TASK", "mmlu"):
            done = c4("record", "--task", task, "--n", "2", *SMALL)
            assert done.exit_code == 0, done.output
    return made


@pytest.fixture
def folder(recorded, monkeypatch):
    monkeypatch.chdir(recorded)
    return recorded


YAML_RUN, PYTHON_RUN = (
    f"runs/model=tiny/task={name}/method=baseline" for name in ("sums_yaml", "sums")
)


@pytest.mark.parametrize(
    "command",
    [
        "replay --gate cvee --task sums_yaml",
        "calibrate --gate cvee --gamma 2 --set tau=0.5 --out yaml.json --task sums_yaml",
        "report main --task sums_yaml",
        "figures stabilization --format png --task sums_yaml",
        "view runs --html page.html --task sums_yaml",
        f"view {YAML_RUN} --html page.html --task sums_yaml",
        f"grade {YAML_RUN} --task sums_yaml",
        "record --n 3 --task sums_yaml",
        "run --method c4 --n 1 --task sums_yaml --source rows.jsonl",
        "bench --method baseline --n 1 --warmups 0 --passes 1 --task sums_yaml",
    ],
)
def test_a_recorded_yaml_task_goes_by_its_name(folder, command):
    done = c4(*command.split())
    assert done.exit_code == 0, done.output


@pytest.mark.parametrize(
    "command",
    [
        "replay --gate cvee --task sums",
        "report main --task sums",
        "figures stabilization --format png --task sums",
        "view runs --html page.html --task sums",
        f"view {PYTHON_RUN} --html page.html",
        f"grade {PYTHON_RUN} --task sums",
        f"grade {PYTHON_RUN}",
        "run --method c4 --n 1 --task sums",
    ],
)
def test_a_recorded_task_that_is_code_says_how_it_was_named(folder, command):
    done = c4(*command.split())
    assert done.exit_code == 2
    assert "--task my_task.py:TASK" in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_a_mistyped_task_is_told_the_names_of_recordings_too(folder):
    assert "did you mean sums_yaml" in c4("replay", "--task", "sums_yam").stderr


def test_two_tasks_of_one_name_are_refused_and_none_is_dropped(folder):
    (folder / "copy.yaml").write_text(YAML.replace("'{{q}}'", "'Q: {{q}}'"))
    both = ["--task", "my_task.yaml", "--task", "copy.yaml"]
    for words in (["run", "--method", "c4", "--n", "1"], ["replay"]):
        refused = c4(*words, *both)
        assert refused.exit_code == 2
        assert "copy.yaml: results of it and of my_task.yaml would both go by" in refused.stderr
    assert "would both go by" in c4("record", *both).stderr
    two = c4("record", "--task", "mmlu", "--task", "gsm8k")
    assert "one task is recorded at a time" in two.stderr
    said = c4("record", "--task", "copy.yaml", "--n", "3").stderr
    assert "task_definition: fields.doc_to_text: '{{q}}' there, 'Q: {{q}}' here" in said
    assert "extractor" not in said


def test_a_run_names_no_folder_of_the_rows_and_still_finds_them(tmp_path, monkeypatch):
    (tmp_path / "rows.jsonl").write_text(FILES["rows.jsonl"])
    (tmp_path / "own.yaml").write_text(YAML.replace("rows.jsonl", f"{tmp_path}/rows.jsonl"))
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert c4("record", "--task", "../own.yaml", "--n", "1").exit_code == 0
    manifest = read_manifest(Path(YAML_RUN))
    assert str(tmp_path) not in json.dumps(manifest.identity)
    assert manifest.asked["data_files"] == f"{tmp_path}/rows.jsonl"
    assert str(tmp_path) not in json.dumps(asdict(manifest.without_asked()))
    (tmp_path / "own.yaml").unlink()
    assert c4("record", "--task", "sums_yaml", "--n", "2").exit_code == 0
    (tmp_path / "rows.jsonl").unlink()
    assert c4("replay", "--task", "sums_yaml", "--gate", "cvee").exit_code == 0


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("replay --task mmlu --gate my_gates.py:Clam", "has no gate named 'Clam'; did you mean Ca"),
        (
            "replay --task mmlu --gate my_gates:X",
            "the module my_gates has no gate named 'X'; it defines Calm",
        ),
        (
            "replay --task mmlu --gate my_rules.py:X",
            "my_rules.py has no gate named 'X'; it defines Greedy",
        ),
        ("replay --task my_task.py:TSK", "my_task.py has no task named 'TSK'; did you mean TASK?"),
        ("run --task mmlu --method my_rules.py:Gredy", "no method named 'Gredy'; did you mean Gre"),
        ("run --task mmlu --method my_rules.py:Gredy+cvee", "no rule named 'Gredy'; did you mean"),
        ("run --task mmlu --method my_rules.py:Greedy+cve", "no gate named 'cve'; did you mean cv"),
        ("run --task mmlu --method wino+cve", "no gate named 'cve'; did you mean cvee? (in 'wino"),
        ("run --task mmlu --method wini+cvee", "no rule named 'wini'; did you mean wino?"),
        ("run --task mmlu --method wini+my_gates.py:Calm", "no rule named 'wini'; did you mean"),
        ("run --task mmlu --method wino+my_gates.py:Clam", "has no gate named 'Clam'; did you me"),
        ("run --task mmlu --method c4+prophet", "c4 has the gate cvee already; name its rule ins"),
    ],
)
def test_a_mistyped_name_is_told_what_there_is(folder, words, said):
    done = c4(*words.split())
    assert done.exit_code == 2
    assert said in done.stderr
    assert "c4_plugin_" not in done.stderr


def test_a_folder_may_have_a_plus_in_its_name(folder):
    (folder / "a+b").mkdir(exist_ok=True)
    (folder / "a+b/plus_gates.py").write_text(GATES)
    words = ["run", "--task", "mmlu", "--n", "1", *SMALL]
    assert c4(*words, "--method", "a+b/plus_gates.py:Calm").exit_code == 0
    assert c4(*words, "--method", "wino+a+b/plus_gates.py:Calm").exit_code == 0
    assert "did you mean Calm?" in c4(*words, "--method", "a+b/plus_gates.py:Clam").stderr


def test_a_calibration_says_that_its_setting_never_fires(folder):
    words = ["calibrate", "--task", "mmlu", "--set", "tau=1", "--out", "idle.json"]
    idle = c4(*words, "--set", "p_min=99", "--gamma", "2", "--json")
    found = json.loads(idle.stdout)
    assert found["fired"] == 0.0
    assert "no setting that was tried ever fires on the pool" in found["statement"]
    own = ["calibrate", "--task", "mmlu", "--gate", "my_gates.py:Calm", "--out", "own.json"]
    busy = json.loads(c4(*own, "--set", "steps=3,9", "--tolerance", "100", "--json").stdout)
    assert busy["fired"] == 1.0
    assert "fires" not in busy["statement"]
    said = c4(*words, "--set", "p_min=99").stdout
    assert "try looser values with --set" in said.replace("\n", " ")
