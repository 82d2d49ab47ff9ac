"""The house plan: who may import whom. Data walks one way."""

import ast
import re
import subprocess
import sys
import tomllib
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
DECODES = {"models", "store", "gates", "decode", "tasks"}
"""The rooms below `record`, which decodes."""
OFFLINE = {"tasks", "store", "gates", "replay"}
MAY_IMPORT = {
    "tasks": set(),
    "models": set(),
    "store": {"tasks"},
    "gates": {"store", "tasks"},
    "decode": {"models", "gates", "store", "tasks"},
    "record": DECODES,
    "replay": {"gates", "store", "tasks", "record"},
    "analysis": OFFLINE | {"record"},
    "figures": {"analysis"},
    "view": OFFLINE | {"analysis"},
    "cli": DECODES | OFFLINE | {"record", "analysis", "figures", "view", "front"},
    "front": DECODES | OFFLINE | {"record", "analysis", "figures", "view"},
}
"""Which rooms each may import, as docs/architecture.md tells it."""
FREE = ("c4.errors", "c4.plugins", "c4.templates")
"""Packages of `front/` that every room may import; they import only each other."""
SETTINGS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
FOLDERS = SETTINGS["tool"]["setuptools"]["package-dir"]
"""The folder of every package that does not stand where its name says."""
WITHOUT_TORCH = [
    *("c4.tasks", "c4.store", "c4.gates", "c4.replay", "c4.analysis", "c4.analysis.exchange"),
    *("c4.figures", "c4.view", "c4.models", "c4.record.methods", "c4.cli", "c4", "c4.lm_eval"),
]
"""What answers questions about names and files, and so must not load what decodes."""
LONGEST_FUNCTION = 60
"""Lines, from its name to its last statement."""


@cache
def sources():
    """Every module of the package, parsed, by the name it is imported under."""
    found = {}
    for package in SETTINGS["tool"]["setuptools"]["packages"]:
        owner = max((p for p in FOLDERS if f"{package}.".startswith(f"{p}.")), key=len)
        folder = ROOT / FOLDERS[owner] / package.removeprefix(owner).strip(".").replace(".", "/")
        for path in sorted(folder.glob("*.py")):
            name = f"{package}.{path.stem}".removesuffix(".__init__")
            found[name] = ast.parse(path.read_text(encoding="utf-8"))
    return found


def room_of(module):
    """The room that a module stands in; a free package's own name; None if it is not of c4."""
    if module.partition(".")[0] != "c4":
        return None
    for free in FREE:
        if f"{module}.".startswith(f"{free}."):
            return free
    owner = max((p for p in FOLDERS if f"{module}.".startswith(f"{p}.")), key=len)
    return FOLDERS[owner].partition("/")[0]


def imports(where, nodes):
    """The modules that some statements of a module import."""
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, f"{where} imports from a relative place"
            for alias in node.names:
                whole = f"{node.module}.{alias.name}"
                yield whole if whole in sources() else node.module


def at_import_time(node):
    """The statements that run when a module is imported; not functions, nor what types need."""
    for child in ast.iter_child_nodes(node):
        is_function = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        for_types = isinstance(child, ast.If) and "TYPE_CHECKING" in ast.dump(child.test)
        if not is_function and not for_types:
            yield child
            yield from at_import_time(child)


@pytest.mark.parametrize("room", [*MAY_IMPORT, *FREE])
def test_rooms_import_only_what_the_plan_allows(room):
    allowed = {None, *FREE, room, *MAY_IMPORT.get(room, ())}
    for where, tree in sources().items():
        if room_of(where) == room:
            for target in imports(where, ast.walk(tree)):
                assert room_of(target) in allowed, f"{where} imports {target}"


@pytest.mark.parametrize("room", MAY_IMPORT)
def test_no_room_imports_private_modules_of_another(room):
    for where, tree in sources().items():
        if room_of(where) == room:
            for target in imports(where, ast.walk(tree)):
                private = any(part.startswith("_") for part in target.split("."))
                assert not private or room_of(target) in {None, room}, f"{where} imports {target}"


def test_the_architecture_page_tells_the_same_plan():
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    told = {}
    for room, what in re.findall(r"^\| `(\w+)/` \|[^|]*\| ([^|]*) \|", page, re.MULTILINE):
        every = MAY_IMPORT.keys() - {room, "cli"}
        told[room] = every if what.startswith("every") else set(re.findall(r"\w+", what))
    del told["training"]  # not shipped
    assert {room: may & MAY_IMPORT.keys() for room, may in told.items()} == MAY_IMPORT


def test_no_module_needs_itself_to_be_imported():
    graph = {
        where: {target for target in imports(where, at_import_time(tree)) if target in sources()}
        for where, tree in sources().items()
    }
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail(" needs ".join(reversed(error.args[1])))


@pytest.mark.parametrize("module", WITHOUT_TORCH)
def test_what_decodes_nothing_loads_no_torch(module):
    code = f"import sys, {module}; print(*{{'torch', 'transformers'}} & sys.modules.keys())"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "\n"), done.stderr


def test_functions_fit_on_a_screen():
    for where, tree in sources().items():
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                lines = node.end_lineno - node.lineno + 1
                assert lines <= LONGEST_FUNCTION, f"{where}.{node.name} has {lines} lines"


FILE_ACCESS = {
    *("exists", "is_dir", "is_file", "is_symlink", "stat", "lstat", "glob", "rglob", "iterdir"),
    *("walk", "scandir", "listdir", "open", "read_text", "read_bytes", "write_text"),
    *("write_bytes", "mkdir", "makedirs", "touch", "unlink", "remove", "rmdir", "symlink_to"),
    *("hardlink_to", "samefile", "fsync", "flock", "ParquetWriter", "read_table", "scan_parquet"),
}
"""What asks the file system, by any name under which it is called."""
STORAGE = {"c4.store.storage", "c4.store.folders", "c4.store.objects"}
"""The one interface to files, and the two kinds of storage behind it."""
OWN_FILES = {
    ("c4.gates.run_signals", "read_bytes"),
    ("c4.gates.run_signals", "glob"),
    ("c4.analysis.paper", "read_bytes"),
}
"""Calls that read files which come with c4: source code, and the paper's numbers."""


@pytest.mark.parametrize("room", ["store", "gates", "record", "replay", "analysis"])
def test_runs_are_reached_through_the_storage_alone(room):
    for where, tree in sources().items():
        if room_of(where) != room or where in STORAGE or "exchange" in where or "lm_eval" in where:
            continue
        for call in (node.func for node in ast.walk(tree) if isinstance(node, ast.Call)):
            name = getattr(call, "attr", None) or getattr(call, "id", None)
            assert name not in FILE_ACCESS or (where, name) in OWN_FILES, f"{where} calls {name}"
