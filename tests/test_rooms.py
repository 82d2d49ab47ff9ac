"""The house plan, written down once: who may import whom. Data walks one way."""

import ast
import re
import subprocess
import sys
import tomllib
from dataclasses import dataclass
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from statistics import median

import pytest

from c4.analysis.tables import REPORTS
from c4.cli import _figures, _report
from c4.figures import FIGURES

ROOT = Path(__file__).parents[1]

BELOW_RECORD = {"errors", "plugins", "tasks", "models", "store", "gates", "decode"}
SHOWN = {"analysis", "figures", "exchange", "view"}
MAY_IMPORT = {
    "errors": set(),
    "plugins": {"errors"},
    "tasks": {"errors", "plugins"},
    "models": {"errors"},
    "store": {"errors", "tasks"},
    "gates": {"errors", "plugins", "tasks", "store"},
    "decode": {"errors", "tasks", "models", "store"},
    "record": {*BELOW_RECORD, "replay"},
    "replay": {"errors", "plugins", "tasks", "store", "gates"},
    "analysis": {"errors", "plugins", "tasks", "store", "gates", "replay", "record"},
    "figures": {"errors", "analysis"},
    "exchange": {"errors", "tasks", "store", "replay", "analysis"},
    "view": {"errors", "tasks", "store", "gates", "replay", "analysis"},
    "testing": {*BELOW_RECORD, "record", "replay"},
    "harness": {*BELOW_RECORD, "record"},
    "cli": {*BELOW_RECORD, "record", "replay", *SHOWN, "testing", "harness"},
    "front": {*BELOW_RECORD, "record", "replay", *SHOWN, "testing", "harness"},
}
PACKAGES = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"][
    "setuptools"
]["package-dir"]
"""The folder of every room by the name it is imported under: `front/` is `c4` itself."""
DOORS = {folder: package for package, folder in PACKAGES.items()}
METHOD_TABLE = {"c4.record.methods", "c4.record.choices"}
"""What analysis may take from record: which methods there are, and nothing that decodes."""
REGISTRY = {"EMBEDDED_SOURCE", "HUB_SOURCE", "TASKS", "Shape", "find_task", "get_task"}
REGISTRY |= {"AnswerReading", "grade", "read_under"}
"""What it may take from tasks: their names, shapes, readings and graders, and no examples."""
LONGEST_FUNCTION = 60
"""Lines, from its name to its last statement."""
MEDIAN_FUNCTION = 8
WITHOUT_TORCH = [
    *("c4.store", "c4.gates", "c4.replay", "c4.analysis", "c4.figures", "c4.tasks", "c4.view"),
    *("c4", "c4.exchange", "c4.lm_eval", "c4.record.choices", "c4.models", "c4.cli._app"),
]
"""What answers questions about names and files, and so must not load what decodes."""


@dataclass(frozen=True)
class Import:
    """One name that a module takes from another."""

    where: str
    """The module that imports."""
    module: str
    name: str | None
    """None where the module itself is imported."""

    @property
    def target(self):
        """The module that is meant: `from c4.gates import signals` means `c4.gates.signals`."""
        whole = f"{self.module}.{self.name}"
        return whole if whole in sources() else self.module

    def __str__(self):
        return f"{self.where} imports {self.name or ''} from {self.module}"


@cache
def sources():
    """Every module of every room, parsed. The scripts that made the embedded model are no room."""
    found = {}
    for package, folder in PACKAGES.items():
        for path in sorted((ROOT / folder).rglob("*.py")):
            parts = path.relative_to(ROOT / folder).with_suffix("").parts
            if (folder, *parts[:1]) != ("models", "tiny"):
                name = ".".join((package, *parts)).removesuffix(".__init__")
                found[name] = ast.parse(path.read_text(encoding="utf-8"))
    return found


def room_of(module):
    """The room that a module stands in; None if it is not of c4."""
    package = ".".join(module.split(".")[:2])
    if package in PACKAGES:
        return PACKAGES[package]
    return PACKAGES["c4"] if package.partition(".")[0] == "c4" else None


def imports_in(where, nodes):
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (Import(where, alias.name, None) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, f"{where} imports from a relative place"
            yield from (Import(where, node.module, alias.name) for alias in node.names)


def imports(room):
    """Every import in a room's modules, wherever it stands."""
    for where, tree in sources().items():
        if room_of(where) == room:
            yield from imports_in(where, ast.walk(tree))


def at_import_time(node):
    """The statements that run when a module is imported; not functions, nor what types need."""
    for child in ast.iter_child_nodes(node):
        is_function = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        for_types = isinstance(child, ast.If) and "TYPE_CHECKING" in ast.dump(child.test)
        if not is_function and not for_types:
            yield child
            yield from at_import_time(child)


def loaded_by(where):
    """The modules that importing a module imports; of another room its front door too."""
    for taken in imports_in(where, at_import_time(sources()[where])):
        if taken.target in sources():
            yield taken.target
            if room_of(taken.target) != room_of(where):
                yield DOORS[room_of(taken.target)]


@pytest.mark.parametrize("room", MAY_IMPORT)
def test_rooms_import_only_what_the_plan_allows(room):
    for taken in imports(room):
        other = room_of(taken.target)
        assert other in {None, room, *MAY_IMPORT[room]}, str(taken)


def test_every_room_is_in_the_plan():
    rooms = {path.parent.name for path in ROOT.glob("*/py.typed")}
    assert rooms == MAY_IMPORT.keys() == set(PACKAGES.values())


ARCHITECTURE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")


def documented_imports():
    """What the page on the architecture says that each room may import."""
    for room, what in re.findall(r"^\| `(\w+)/` \|[^|]*\| ([^|]*) \|", ARCHITECTURE, re.MULTILINE):
        besides = what.partition("every room but ")[2]
        named = set(MAY_IMPORT) - {room, besides} if besides else set(re.findall(r"\w+", what))
        yield room, named & MAY_IMPORT.keys() | {"errors"}


def behind(room, arrows):
    """The rooms from which arrows lead to a room, by whatever way."""
    found = {tail for tail, head in arrows if head == room}
    return found.union(*(behind(tail, arrows) for tail in found))


def test_the_architecture_page_tells_the_same_plan():
    told = dict(documented_imports())
    del told["training"]  # no room: it is not shipped
    assert told == {room: may | {"errors"} for room, may in MAY_IMPORT.items()}


def test_the_picture_of_the_rooms_shows_the_same_plan():
    arrows = re.findall(r"^ +(\w+) --> (\w+)$", ARCHITECTURE, re.MULTILINE)
    for tail, head in arrows:
        assert tail in MAY_IMPORT[head], f"{tail} --> {head}"
    for room, may in MAY_IMPORT.items():
        assert may - {"errors"} <= behind(room, arrows), room


@pytest.mark.parametrize("room", MAY_IMPORT)
def test_no_room_looks_into_the_drawers_of_another(room):
    for taken in imports(room):
        private = any(part.startswith("_") for part in taken.target.split("."))
        of_another = room_of(taken.target) not in (None, room)
        assert not (private and of_another), str(taken)


def test_no_module_needs_itself_to_be_imported():
    try:
        TopologicalSorter({where: set(loaded_by(where)) for where in sources()}).prepare()
    except CycleError as error:
        pytest.fail(" needs ".join(reversed(error.args[1])))


@pytest.mark.parametrize("module", WITHOUT_TORCH)
def test_what_decodes_nothing_loads_no_torch(module):
    code = f"import sys, {module}; print(*{{'torch', 'transformers'}} & sys.modules.keys())"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "\n"), done.stderr


def test_analysis_reads_what_is_on_disk_and_decodes_nothing():
    for taken in imports("analysis"):
        if room_of(taken.target) == "record":
            assert taken.target in METHOD_TABLE, str(taken)
        if room_of(taken.target) == "tasks":
            assert taken.name in REGISTRY, str(taken)


def functions():
    """The lines of every function of every room, by where it stands."""
    for where, tree in sources().items():
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                yield f"{where}.{node.name}", node.end_lineno - node.lineno + 1


def test_functions_are_short():
    found = list(functions())
    assert not [(name, lines) for name, lines in found if lines > LONGEST_FUNCTION]
    assert median(lines for _, lines in found) <= MEDIAN_FUNCTION


@pytest.mark.parametrize("room", MAY_IMPORT)
def test_nothing_draws_through_pyplot(room):
    assert not [str(taken) for taken in imports(room) if "pyplot" in f"{taken.module}.{taken.name}"]


FILE_ACCESS = {
    *("exists", "is_dir", "is_file", "is_symlink", "stat", "lstat", "glob", "rglob", "iterdir"),
    *("walk", "scandir", "listdir", "open", "read_text", "read_bytes", "write_text"),
    *("write_bytes", "mkdir", "makedirs", "touch", "unlink", "remove", "rmdir", "symlink_to"),
    *("hardlink_to", "samefile", "fsync", "flock", "ParquetWriter", "read_table", "scan_parquet"),
}
"""What asks the file system, by any name under which it is called."""
STORAGE = {"c4.store.storage", "c4.store.folders", "c4.store.objects"}
"""The seam, and the two kinds of storage behind it, which nobody else imports."""
OWN_CODE = {
    ("c4.gates.run_signals", "read_bytes"),
    ("c4.gates.run_signals", "glob"),
    ("c4.analysis._published", "read_bytes"),
}
"""Files that come with c4 and are no runs: source code, and the paper's numbers."""


@pytest.mark.parametrize("room", ["store", "gates", "record", "replay", "analysis"])
def test_runs_are_reached_through_the_storage_alone(room):
    for where, tree in sources().items():
        if room_of(where) != room or where in STORAGE:
            continue
        calls = (node.func for node in ast.walk(tree) if isinstance(node, ast.Call))
        for called in calls:
            name = getattr(called, "attr", None) or getattr(called, "id", None)
            assert name not in FILE_ACCESS or (where, name) in OWN_CODE, f"{where} calls {name}"


def test_only_the_storage_knows_its_kinds():
    kinds = STORAGE - {"c4.store.storage"}
    for room in MAY_IMPORT:
        for taken in imports(room):
            assert taken.target not in kinds or taken.where == "c4.store.storage", str(taken)


@pytest.mark.parametrize(("text", "known"), [(_figures.HELP, FIGURES), (_report.HELP, REPORTS)])
def test_help_lists_every_name_there_is(text, known):
    listed = text.partition("Names: ")[2].partition(";")[0]
    assert [name.strip() for name in listed.split(",")] == list(known)
