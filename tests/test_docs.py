"""Documents are test inputs."""

import importlib.util
import json
import re
import shlex
import shutil
from pathlib import Path

import pytest
from typer.main import get_command

from c4.cli.app import app
from c4.figures import FIGURES
from c4.record.methods import METHODS
from c4.store.cells import CELLS
from c4.store.grades import GRADES
from c4.store.origins import Origin
from c4.store.rows import ROWS
from c4.store.timings import BENCH
from tests.commands import c4

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
FORMAT = (ROOT / "docs" / "format.md").read_text(encoding="utf-8")
METHODS_PAGE = (ROOT / "docs" / "methods.md").read_text(encoding="utf-8")
COMMANDS = get_command(app).commands  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_every_command_is_explained_and_in_the_readme(name):
    assert COMMANDS[name].help
    assert f"c4 {name}" in README


@pytest.mark.parametrize("column", [*CELLS.names, *ROWS.names, *GRADES.names, *BENCH.names])
def test_every_column_is_documented(column):
    assert f"`{column}`" in FORMAT


@pytest.mark.parametrize("method", METHODS)
def test_every_method_is_documented(method):
    assert f"`{method}`" in METHODS_PAGE


@pytest.mark.parametrize("origin", Origin)
def test_every_origin_is_documented(origin):
    assert f"| {origin.value} | `{origin.name}` |" in METHODS_PAGE


PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
ENGINES_TESTED = "starts processes, each of which loads torch; tests/record/test_engines.py does"
NOT_RUN = {
    "make demo": "sets up an environment of its own; tests/cli/test_demo.py runs `c4 demo`",
    "make test": "would run this test",
    "pip install .": "installs",
    "pip install . && c4 record --task math && c4 calibrate --gamma 2 && c4 figures": "installs",
    "pip install 'c4-dlm[math]'": "installs",
    "pip install 'c4-dlm[cloud]'": "installs",
    "c4 record --task gsm8k --model llada --out s3://bucket/runs": "tests/cli/test_places.py does",
    "c4 replay --runs s3://bucket/runs --gate cvee": "tests/cli/test_places.py does",
    "c4 runs --check --runs s3://bucket/runs": "tests/cli/test_places.py does",
    "c4 demo": "tests/cli/test_demo.py runs it",
    "c4 view": "serves until it is interrupted; tests/view asks it",
    "pip install 'c4-dlm[view]'": "installs",
    "python benchmarks/answer_styles.py --data ../shared/data": "runs programs for minutes",
    "python benchmarks/bench_reading.py": "measures time",
    "python benchmarks/bench_batch.py": "measures time",
    "c4 record --task mmlu --n 8 --engine local --workers 2 --out shared": ENGINES_TESTED,
    "c4 run --method c4 --task mmlu --n 8 --engine local --workers 2 --out shared": ENGINES_TESTED,
    "c4 grade shared/model=tiny/task=mmlu/method=baseline --all --engine local --workers 2": (
        ENGINES_TESTED
    ),
    "make slow TESTS=tests/tasks": "runs tests",
}
"""Documented commands that are not run here, and why."""
FEW = {"--n": "1", "--passes": "1", "--warmups": "1", "--batch": "2"}
"""Values of options that make a documented command quick without changing what it does."""
SMALL = {
    "record": {"--n": "1"},
    "run": {"--n": "1"},
    "verify": {"--n": "1", "--gate": "cvee"},
    "bench": {"--n": "1", "--passes": "1", "--warmups": "1"},
    "figures": {"--format": "svg"},
}
"""What is added for the same reason where a command leaves it open."""


def made_small(command, args):
    """The words of a command that does as little as it can; `c4 demo` draws all figures."""
    few = [FEW.get(option, word) for option, word in zip(["", *args], args, strict=False)]
    added = {name: value for name, value in SMALL.get(command, {}).items() if name not in args}
    few += [word for pair in added.items() for word in pair]
    draws_all = command == "figures" and not FIGURES.keys() & set(args)
    return [*few, "stabilization"] if draws_all else few


def documented_lines():
    """Every command line of every console block."""
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        for block in re.findall(r"^```console\n(.*?)^```", text, re.MULTILINE | re.DOTALL):
            for line in re.findall(r"^\$ (.*?)\s*(?:#.*)?$", block, re.MULTILINE):
                yield page.name, line


def documented_files():
    """Every file that a page shows in full: its first line is its name."""
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        yield from re.findall(
            r"^```(?:python|yaml|text)\n# (my_\w+\.\w+)\n(.*?)^```", text, re.MULTILINE | re.DOTALL
        )


LINES = sorted(set(documented_lines()))


@pytest.fixture(scope="module")
def workspace(tmp_path_factory):
    """A folder with what the documents speak of: recordings, a calibration, a gate, rows."""
    folder = tmp_path_factory.mktemp("docs")
    runs = str(folder / "runs")
    for task in ("mmlu", "gsm8k", "math"):
        for skip in ("0", "40"):
            result = c4("record", "--task", task, "--skip", skip, "--n", "1", "--out", runs)
            assert result.exit_code == 0, result.output
    shutil.copytree(folder / "runs", folder / "shared")
    frozen = str(folder / "calibration.json")
    assert c4("calibrate", "--gamma", "2", "--runs", runs, "--out", frozen).exit_code == 0
    for name, source in documented_files():
        (folder / name).write_text(source)
    row = {"ID": "1", "Body": "Ann has 3 apples.", "Question": "How many?", "Answer": "3"}
    (folder / "my-rows.jsonl").write_text(f"{json.dumps(row)}\n" * 2)
    return folder


@pytest.mark.parametrize("line", sorted({line for _, line in LINES} - NOT_RUN.keys()))
def test_every_documented_command_runs(line, workspace, monkeypatch):
    program, command, *args = shlex.split(line)
    assert program == "c4"
    monkeypatch.chdir(workspace)
    monkeypatch.syspath_prepend(workspace)
    monkeypatch.setattr("c4.cli.watch.SECONDS_FOR_A_WORKER", 0.0)  # nobody is going to come
    result = c4(command, *made_small(command, args))
    assert result.exit_code == 0, result.output


NOTEBOOK_PAGE = (ROOT / "docs" / "notebook.md").read_text(encoding="utf-8")
BY_HAND, *OTHERS = re.findall(r"^```python\n(.*?)^```", NOTEBOOK_PAGE, re.M | re.DOTALL)
SCRIPTS = [*re.findall(r"^```python\n(.*?)^```", README, re.M | re.DOTALL), *OTHERS]


@pytest.mark.parametrize("script", SCRIPTS)
def test_documented_python_runs(script, workspace, monkeypatch, capsys):
    monkeypatch.chdir(workspace)
    exec(compile(script, "a document", "exec"), {})
    assert capsys.readouterr().out


@pytest.mark.parametrize(("name", "source"), list(documented_files()))
def test_a_worked_example_is_short(name, source):
    assert len([line for line in source.splitlines() if line.strip()]) < 15, name


def test_the_worked_script_names_the_run_and_draws(workspace, monkeypatch, capsys):
    monkeypatch.chdir(workspace)
    picture = workspace / "phase-diagram.png"
    picture.unlink(missing_ok=True)
    exec(compile(BY_HAND, "notebook.md", "exec"), {})
    said = capsys.readouterr().out.splitlines()[0]
    assert re.fullmatch(r"<Run tiny math baseline, n=2, accuracy \d+\.\d%>", said)
    assert picture.stat().st_size > 10_000


def load_reference():
    spec = importlib.util.spec_from_file_location("reference", ROOT / "docs" / "reference.py")
    reference = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(reference)
    return reference


@pytest.mark.parametrize("page", ["cli.md", "api.md"])
def test_references_are_what_the_code_says(page):
    made = load_reference().PAGES[page]()
    assert (ROOT / "docs" / page).read_text(encoding="utf-8") == made


def test_files_that_the_architecture_names_exist():
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    paths = re.findall(r"`([a-z_]+/[a-z_./]*)`", text)
    assert len(paths) > 30
    assert [path for path in paths if not (ROOT / path).exists()] == []


def test_what_is_not_run_is_still_documented():
    assert NOT_RUN.keys() <= {line for _, line in LINES}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_between_pages_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8")):
        assert (page.parent / target).exists(), target
