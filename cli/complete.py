"""Shell completion of names, files and run folders.

A registry is imported only when its names are requested. Nothing here loads torch or reads the
files of a run. Users' own files are parsed but never run. Bash splits words at `:` and `=`, so it
completes neither objects inside files nor run folders after an `=`; zsh and fish complete both.
"""

import ast
from collections.abc import Callable, Iterable
from importlib import import_module
from pathlib import Path

Completer = Callable[[str], list[str]]
VALUES = (ast.Assign, ast.AnnAssign)
FUNCTIONS = (ast.FunctionDef, ast.ClassDef, *VALUES)
MOST_FILES_PARSED = 20
"""Most files to parse for objects; if more match the typed text, only file names are offered."""


def offer(
    known: Callable[[], Iterable[str]], *suffixes: str, kinds: tuple[type, ...] = ()
) -> Completer:
    """Return a function that completes names, files with some suffixes, and Python objects.

    Args:
        kinds: types of the statements that define the objects to offer, such as `ast.ClassDef`.
    """

    def complete(incomplete: str) -> list[str]:
        found = [*known(), *_files(incomplete, suffixes), *_objects(incomplete, kinds)]
        return [name for name in dict.fromkeys(found) if name.startswith(incomplete)]

    return complete


def _files(incomplete: str, suffixes: tuple[str, ...]) -> list[str]:
    folder = Path(incomplete).parent
    try:
        found = sorted(path for path in folder.iterdir() if path.suffix in suffixes)
    except OSError:
        return []
    return [str(path) for path in found]


def _objects(incomplete: str, kinds: tuple[type, ...]) -> list[str]:
    """Return the objects in Python files that match the typed text, such as `my_gates.py:Calm`."""
    if not kinds:
        return []
    from c4.plugins import defined_names

    file, colon, _ = incomplete.rpartition(":")
    files = [file] if colon else _files(incomplete, (".py",))
    files = [name for name in files if name.startswith(file if colon else incomplete)]
    if len(files) > MOST_FILES_PARSED:
        return [f"{name}:" for name in files]
    return [f"{file}:{name}" for file in files for name in defined_names(Path(file), kinds)]


def run_folders(incomplete: str) -> list[str]:
    """Return the run folders below the typed folder, or below `runs` by default."""
    above, model, _ = incomplete.partition("model=")
    root = Path((above if model else incomplete.rpartition("/")[0]) or "runs")
    try:
        found = sorted(root.glob("model=*/task=*/method=*"))
    except OSError:
        return []
    return [str(path) for path in found if str(path).startswith(incomplete)]


def registered(module: str) -> Callable[[], list[str]]:
    """Return a function that lists the names in a module's registry."""
    return lambda: list(import_module(module).REGISTRY.names)


def method_names() -> list[str]:
    """Return the methods, and for every rule the start of a rule+gate pair."""
    from c4.decode.rules import REGISTRY
    from c4.record.methods import METHODS

    return [*METHODS, *(f"{rule}+" for rule in REGISTRY.names)]


def model_names() -> list[str]:
    from c4.models import ALIASES, EMBEDDED

    return [EMBEDDED, *ALIASES]


complete_task = offer(registered("c4.tasks.registry"), ".yaml", ".yml", kinds=VALUES)
complete_gate = offer(registered("c4.gates.registry"), kinds=(ast.ClassDef, *VALUES))
complete_grader = offer(registered("c4.tasks.graders"), kinds=FUNCTIONS)
complete_reading = offer(registered("c4.tasks.reading.extractors"), kinds=FUNCTIONS)
complete_signal = offer(registered("c4.gates.own_signals"), kinds=FUNCTIONS)
complete_model = offer(model_names)
complete_source = offer(lambda: ["embedded", "hub"], ".jsonl", ".parquet")
complete_engine = offer(lambda: ["local", "ray", "slurm"])
complete_rule = offer(method_names, kinds=(ast.ClassDef, *VALUES))


def complete_method(incomplete: str) -> list[str]:
    """Complete a method, or the gate after the `+` of a pair."""
    rule, plus, gate = incomplete.rpartition("+")
    if plus:
        return [f"{rule}+{name}" for name in complete_gate(gate)]
    return complete_rule(incomplete)
