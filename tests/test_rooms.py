"""The house plan, written down once: who may import whom. Data walks one way."""

import ast
from pathlib import Path

import pytest

from c4.analysis import REPORTS
from c4.cli import _figures, _report
from c4.figures import EXHIBITS

ROOT = Path(__file__).parents[1]

MAY_IMPORT = {
    "errors": set(),
    "tasks": {"errors"},
    "models": {"errors"},
    "record": {"errors", "tasks", "models"},
    "replay": {"errors", "tasks", "record"},
    "analysis": {"errors", "tasks", "record", "replay"},
    "figures": {"errors", "analysis"},
    "cli": {"errors", "tasks", "models", "record", "replay", "analysis", "figures"},
}
READERS = {
    *("IntArray", "TokenArray", "Trajectory", "Origin"),
    *("LiveRun", "find_live", "open_live"),
    *("Run", "find_runs", "open_run"),
    *("conditions", "read_timings"),
    *("label_under", "reading_words"),
}
"""What analysis may take from record: it reads what is on disk, and decodes nothing."""
REGISTRY = {"EMBEDDED_SOURCE", "HUB_SOURCE", "TASKS", "Shape", "get_task", "grade"}
REGISTRY |= {"AnswerReading"}
"""What it may take from tasks: their names, shapes, readings and graders, and no examples."""


def imports(room):
    """Every import in a room's modules: file, module and name."""
    for path in sorted((ROOT / room).glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                yield from ((path.name, alias.name, None) for alias in node.names)
            elif isinstance(node, ast.ImportFrom):
                yield from ((path.name, node.module, alias.name) for alias in node.names)


@pytest.mark.parametrize("room", MAY_IMPORT)
def test_rooms_import_only_what_the_plan_allows(room):
    for file, module, name in imports(room):
        package, _, rest = module.partition(".")
        if package == "c4":
            other = (rest or name).partition(".")[0]
            assert other in {room, *MAY_IMPORT[room]}, f"{room}/{file} imports {module}"


def test_every_room_is_in_the_plan():
    assert {path.parent.name for path in ROOT.glob("*/py.typed")} <= MAY_IMPORT.keys()


def test_analysis_reads_what_is_on_disk_and_decodes_nothing():
    taken = {"c4.record": READERS, "c4.tasks": REGISTRY}
    for file, module, name in imports("analysis"):
        assert module not in taken or name in taken[module], f"analysis/{file} takes {name}"


@pytest.mark.parametrize("room", MAY_IMPORT)
def test_nothing_draws_through_pyplot(room):
    assert not [m for _, m, name in imports(room) if "pyplot" in (m or "") or name == "pyplot"]


@pytest.mark.parametrize(("text", "known"), [(_figures.HELP, EXHIBITS), (_report.HELP, REPORTS)])
def test_help_lists_every_name_there_is(text, known):
    listed = text.partition("Names: ")[2].partition(";")[0]
    assert [name.strip() for name in listed.split(",")] == list(known)
