"""Everything that a user can bring along, from an installed wheel in an empty folder.

    python benchmarks/open_doors.py

Builds the wheel, installs it apart from everything else, writes gates, rules, tasks and prompts
into an empty folder, and takes each through the commands that accept its built-in sibling. Every
item prints what was seen. The script fails if an item does, or if a file of the installed package
was changed. Needs the packages of requirements-dev.lock; takes a few minutes.
"""

import argparse
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

GATE = """\
from dataclasses import dataclass
from c4.gates import parameter


@dataclass(frozen=True)
class Calm:
    nats: float = parameter(0.1, high=1.0, stricter=-1, meaning="entropy of the answer")

    def fires(self, s):
        return (s.entropy <= self.nats) & (s.run >= 3)
"""
SIGNAL_GATE = """\
import numpy as np


def flux(s, cells):
    changed = cells.token[1:] != cells.token[:-1]
    return np.concatenate([[1.0], changed.mean(axis=1)])


class Quiet:
    signals = (flux,)

    def fires(self, s):
        return (s.step > 3) & (s.flux < 0.05)
"""
READERS = """\
import re
from c4.tasks import Candidate


def capital(text, choices=()):
    found = re.search(r"[A-D]", text)
    return found and Candidate(found[0], found.start(), found.end())


def lenient(example, answer, text):
    return answer == example.target or example.target in text
"""
RULE = """\
from dataclasses import dataclass
from c4.decode import Rule, accept, parameter


@dataclass(frozen=True)
class Greedy(Rule):
    tau: float = parameter(0.8, high=1.0, meaning="confidence that commits a position")

    def choose(self, places, reading):
        return accept(places[reading.confidence[places] > self.tau], places, reading)
"""
TASK = """\
from c4.tasks import Example, Task, answers

ROWS = [{"question": f"What is {i} + {i}?", "answer": 2 * i} for i in range(1, 9)]


def read(row):
    return Example(f"Q: {row['question']}\\nA: Let's think step by step.", str(row["answer"]))


TASK = Task(name="sums", read=read, rows=ROWS, **answers("number"))
"""
YAML_TASK = """\
task: sums_yaml
dataset_path: json
dataset_kwargs: {data_files: sums.jsonl}
test_split: train
doc_to_text: "Q: {{question}}\\nA: Let's think step by step."
doc_to_target: answer
extractor: number
"""
PROMPT = "Q: {{question}}\nA: Let's think step by step, and briefly.\n"
LETTERS, NUMBERS = "model=tiny/task=mmlu/method=baseline", "gsm8k"


class Doors:
    """An empty folder, an installed wheel, and the items that are tried with them."""

    def __init__(self, folder: Path, site: Path) -> None:
        self.folder = folder
        self.env = {
            **{k: v for k, v in os.environ.items() if not k.startswith("PYTHON")},
            "PYTHONPATH": str(site),
            "HF_HOME": str(folder / "hf"),
            "OMP_NUM_THREADS": "1",
        }

    def python(self, *args: str, **env: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, *args],
            cwd=self.folder,
            env=self.env | env,
            capture_output=True,
            text=True,
            check=False,
        )

    def c4(self, line: str, *, fails: bool = False, **env: str) -> str:
        """What a command prints; an error unless it ends as it should."""
        done = self.python("-m", "c4.cli", *line.split(), **env)
        if bool(done.returncode) != fails:
            raise AssertionError(f"c4 {line}: exit code {done.returncode}\n{done.stderr[-3000:]}")
        return done.stderr if fails else done.stdout

    def write(self, name: str, text: str) -> None:
        (self.folder / name).write_text(text)

    def gate(self) -> str:
        """(1) A gate of one's own: replayed, calibrated, verified, run, timed and drawn."""
        self.write("my_gates.py", GATE)
        self.c4("record --task mmlu --skip 36 --n 8")
        gate = "my_gates.py:Calm"
        replayed = json.loads(self.c4(f"replay --gate {gate} --gate cvee --json"))
        assert {row["gate"] for row in replayed} == {gate, "cvee"}
        chosen = json.loads(self.c4(f"calibrate --gate {gate} --out calm.json --json"))
        assert chosen["parameters"], chosen["statement"]
        self.c4(f"verify --task mmlu --gate {gate} --n 2")
        ran = json.loads(self.c4(f"run --task mmlu --method schedule+{gate} --n 2 --json"))
        timed = f"bench --task mmlu --method baseline --method schedule+{gate}"
        self.c4(f"{timed} --n 1 --passes 1 --warmups 1")
        self.c4(f"figures phase-diagram --gate {gate} --gate prophet --format png")
        assert (self.folder / "figures-out" / "phase-diagram.png").stat().st_size > 10_000
        saving = next(row["saving"] for row in replayed if row["gate"] == gate)
        return f"{gate} saves {saving:.0%} replayed; chosen {chosen['parameters']}; ran {_n(ran)}"

    def readers(self) -> str:
        """(1, on) A signal, an extractor and a grader of one's own, through the same commands."""
        self.write("my_signals.py", SIGNAL_GATE)
        self.write("my_readers.py", READERS)
        read = "--reading my_readers.py:capital --grader my_readers.py:lenient"
        gate = "my_signals.py:Quiet"
        (row,) = json.loads(self.c4(f"replay --gate {gate} {read} --json"))
        self.c4(f"calibrate --gate cvee {read} --tolerance 100 --out read.json")
        self.c4(f"replay --config read.json {read}")
        self.c4(f"verify --task mmlu --gate {gate} --n 2 {read}")
        self.c4(f"run --task mmlu --method wino+{gate} --n 2 {read}")
        self.c4(f"bench --task mmlu --method {gate} --n 1 --passes 1 --warmups 1 {read}")
        self.c4(f"report main --gate {gate} {read}")
        self.c4(f"figures trace --gate {gate} --signal entropy --format png {read}")
        self.c4(f"view runs --html page.html --n 1 --gate {gate} {read}")
        self.c4(f"grade runs/{LETTERS} {read}")
        checks = "c4.testing.check_{0}('my_{1}')"
        kinds = {
            "gate": "gates.py:Calm",
            "signal": "signals.py:flux",
            "extractor": "readers.py:capital",
            "grader": "readers.py:lenient",
        }
        code = ";".join(["import c4.testing", *(checks.format(*pair) for pair in kinds.items())])
        assert self.python("-c", code).returncode == 0
        return f"{gate} saves {row['saving']:.0%}; {', '.join(kinds)} keep their contracts"

    def rule(self) -> str:
        """(2) A commit rule of one's own, alone and with CVEE."""
        self.write("my_rules.py", RULE)
        method = "my_rules.py:Greedy"
        methods = f"--method baseline --method {method} --method {method}+cvee"
        ran = json.loads(self.c4(f"run --task mmlu {methods} --n 2 --json"))
        steps = {row["method"]: row["steps"] for row in _rows(ran)}
        assert len(steps) == 3, steps
        return ", ".join(f"{name}: {value:g} steps" for name, value in steps.items())

    def tasks(self) -> str:
        """(3) A task as Python and as YAML, both recorded."""
        self.write("my_task.py", TASK)
        self.write("my_task.yaml", YAML_TASK)
        rows = [{"question": f"What is {i} + {i}?", "answer": 2 * i} for i in range(1, 5)]
        self.write("sums.jsonl", "".join(f"{json.dumps(row)}\n" for row in rows))
        said = [
            self.c4(f"record --task {name} --n 2") for name in ("my_task.py:TASK", "my_task.yaml")
        ]
        return "; ".join(text.strip().partition(" -> ")[0] for text in said)

    def prompt(self) -> str:
        """(4) Another wording for a task of c4's own."""
        self.write("my_prompt.txt", PROMPT)
        self.c4(f"record --task {NUMBERS} --prompt my_prompt.txt --n 1 --out worded")
        code = "import c4; run = c4.open('worded'); print(next(run.rows()).prompt)"
        prompt = self.python("-c", code).stdout
        assert "and briefly" in prompt, prompt
        return repr(prompt.strip().splitlines()[-1])

    def calibrated(self) -> str:
        """(5) A calibrated setting, drawn beside the default."""
        self.c4("calibrate --gamma 2 --task mmlu --out cvee.json")
        self.c4("figures phase-diagram --config cvee.json --gate cvee --format png --out drawn")
        drawn = (self.folder / "drawn" / "phase-diagram.csv").read_text()
        gates = sorted({line.split(",")[6] for line in drawn.splitlines()[1:]})
        assert len(gates) >= 2, gates
        return ", ".join(gates)

    def lm_eval_tasks(self) -> str:
        """(6) Four tasks of lm-evaluation-harness, recorded."""
        from tests.record.lm_eval.own_tasks import save_tasks

        said = []
        for path in save_tasks(self.folder / "harness").values():
            said.append(self.c4(f"record --task lm-eval:{path} --out harness-runs"))
        refused = self.c4("record --task lm-eval:arc_easy", fails=True)
        assert "scores likelihoods" in refused
        return "; ".join(text.strip().partition(" (")[0] for text in said) + "; arc_easy refused"

    def lm_eval_model(self) -> str:
        """(7) The same tasks through C4LM: every grade is the harness's."""
        code = """
import c4, c4.lm_eval, json
from lm_eval import simple_evaluate
from lm_eval.tasks import TaskManager
names = ["own_number", "own_letter", "own_whole", "own_shots"]
model = c4.lm_eval.C4LM(model="tiny", record="harness-runs", include="harness")
judged = simple_evaluate(model=model, tasks=[f"harness/{name}.yaml" for name in names],
    log_samples=True, bootstrap_iters=0, task_manager=TaskManager(include_defaults=False))
agree = total = 0
for run in c4.open_all("harness-runs"):
    name = run.task_name.removeprefix("lm-eval:")
    samples = judged["samples"][name]
    first = {s["doc_id"]: s for s in samples if s["filter"] == samples[0]["filter"]}
    for row in run.rows():
        sample = first[row.source_row]
        score = sample["acc"] if name == "own_whole" else sample["exact_match"]
        agree += row.correct == (score >= 1)
        total += 1
print(int(agree), total)
"""
        done = self.python("-c", code)
        assert done.returncode == 0, done.stderr[-3000:]
        agree, total = map(int, done.stdout.splitlines()[-1].split())
        assert agree == total > 0, (agree, total)
        return f"{agree} of {total} grades are the harness's"

    def notebook(self) -> str:
        """(8) The notebook executes."""
        shutil.copy(ROOT / "examples" / "early_exit.ipynb", self.folder / "notebook.ipynb")
        code = """
import nbformat
from nbclient import NotebookClient
notebook = nbformat.read("notebook.ipynb", as_version=4)
NotebookClient(notebook, timeout=600).execute()
shown = [out.get("data", {}) for cell in notebook.cells for out in cell.get("outputs", [])]
print(sum("image/png" in data for data in shown))
"""
        done = self.python("-c", code)
        assert done.returncode == 0, done.stderr[-3000:]
        return f"{done.stdout.strip()} figures drawn"

    def hub(self) -> str:
        """(9) A run is pushed to a stand-in for the hub, and pulled again."""
        from tests.analysis.exchange.standin import served

        with served() as (_, address):
            env = {"HF_ENDPOINT": address, "HF_TOKEN": "hf_nobody", "HF_HUB_DISABLE_XET": "1"}
            pushed = self.c4(f"push runs/{LETTERS} somebody/letters", **env)
            pulled = self.c4("pull somebody/letters --out pulled", **env)
        self.c4("runs --check --runs pulled")
        self.c4("replay --runs pulled --gate cvee")
        return f"{pushed.strip()}; {pulled.strip()}"

    def imports(self) -> str:
        """(10) Prophet's and KLASS's files are read, and a malicious one is refused."""
        from tests.analysis.exchange.foreign import (
            SETTLES_LATE,
            save_evil,
            save_klass,
            save_prophet,
        )

        save_prophet(self.folder / "prophet" / "question_0000_steps_004.pt", SETTLES_LATE)
        texts = ["The answer", "The answer 12", "The answer 12."]
        save_klass(self.folder / "klass", texts, [[10], [11], [12]])
        said = [self.c4("import prophet prophet --json"), self.c4("import klass klass --json")]
        summaries = [json.loads(text)["summary"] for text in said]
        evil = save_evil(self.folder / "evil" / "question_0000_steps_004.pt", "touch harmed")
        refused = self.c4("import prophet evil", fails=True)
        assert evil.name in refused
        assert not (self.folder / "harmed").exists()
        settled = ", ".join(f"{s[-1]['model']} settles by {s[-1]['s_p']:.2f}" for s in summaries)
        return f"{settled}; {refused.strip()}"

    @property
    def items(self) -> list[Callable[[], str]]:
        return [
            *(self.gate, self.readers, self.rule, self.tasks, self.prompt, self.calibrated),
            *(self.lm_eval_tasks, self.lm_eval_model, self.notebook, self.hub, self.imports),
        ]


def _rows(ran: object) -> list[dict[str, object]]:
    return ran if isinstance(ran, list) else ran["runs"]  # type: ignore[index]


def _n(ran: object) -> str:
    return f"{_rows(ran)[0]['n']} examples live"


@contextmanager
def installed_wheel() -> Iterator[Path]:
    """A folder with the wheel's content and nothing else, built from this checkout."""
    with tempfile.TemporaryDirectory() as folder:
        source, wheels, site = (Path(folder) / name for name in ("source", "wheels", "site"))
        ignored = shutil.ignore_patterns(
            ".git", ".venv*", "build", "*.egg-info", "runs", "__pycache__"
        )
        shutil.copytree(ROOT, source, ignore=ignored)
        pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
        build = [*pip, "wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", str(wheels)]
        subprocess.run([*build, str(source)], check=True, stderr=subprocess.DEVNULL)
        (wheel,) = wheels.glob("*.whl")
        install = [*pip, "install", "--no-deps", "--target", str(site), str(wheel)]
        subprocess.run(install, check=True, stderr=subprocess.DEVNULL)
        yield site


def fingerprint(site: Path) -> dict[str, str]:
    """A hash of every file of the installed package but compiled ones."""
    files = (path for path in site.rglob("*") if path.is_file() and path.suffix != ".pyc")
    return {str(p): hashlib.sha256(p.read_bytes()).hexdigest() for p in files}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", type=int, action="append", help="number of an item to try")
    asked = parser.parse_args().only
    failed = []
    with installed_wheel() as site, tempfile.TemporaryDirectory() as folder:
        before = fingerprint(site)
        doors = Doors(Path(folder), site)
        for number, item in enumerate(doors.items, 1):
            if asked and number not in asked:
                continue
            try:
                print(f"{item.__doc__}\n    {item()}", flush=True)
            except Exception as error:
                failed.append(number)
                print(f"{item.__doc__}\n    FAILED: {error}", flush=True)
        if fingerprint(site) != before:
            failed.append(0)
            print("files of the installed package were changed")
    sys.exit(f"failed: {failed}" if failed else 0)


if __name__ == "__main__":
    main()
