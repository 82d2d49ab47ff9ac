"""Values that a shell offers when Tab is pressed: names, files, and the runs in this folder.

Nothing here loads torch or reads a file of a run. Users' own files are parsed and never run.
"""

import ast
from collections.abc import Callable, Iterable
from pathlib import Path

from c4.gates.own_signals import REGISTRY as SIGNAL_NAMES
from c4.gates.registry import REGISTRY as GATE_NAMES
from c4.models import ALIASES, EMBEDDED
from c4.plugins import defined_names
from c4.record.methods import METHODS, RULE_NAMES
from c4.tasks.extractors import REGISTRY as EXTRACTOR_NAMES
from c4.tasks.graders import REGISTRY as GRADER_NAMES
from c4.tasks.registry import REGISTRY as TASK_NAMES

Completer = Callable[[str], list[str]]
VALUES = (ast.Assign, ast.AnnAssign)
FUNCTIONS = (ast.FunctionDef, ast.ClassDef, *VALUES)
FILES_LOOKED_INTO = 20
"""So many files are parsed for the objects in them; of more, only the names are offered."""


def offer(
    known: Callable[[], Iterable[str]], *suffixes: str, kinds: tuple[type, ...] = ()
) -> Completer:
    """A function that completes names, files of some kinds, and objects of Python files.

    Args:
        kinds: what defines an object that may be meant, such as `ast.ClassDef`.
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
    """Objects of the Python files that may be meant, as in `my_gates.py:Calm`."""
    if not kinds:
        return []
    file, colon, _ = incomplete.rpartition(":")
    files = [file] if colon else _files(incomplete, (".py",))
    files = [name for name in files if name.startswith(file if colon else incomplete)]
    if len(files) > FILES_LOOKED_INTO:
        return [f"{name}:" for name in files]
    return [f"{file}:{name}" for file in files for name in defined_names(Path(file), kinds)]


def run_folders(incomplete: str) -> list[str]:
    """The folders of runs below `runs`, or below the folder that was typed."""
    above, model, _ = incomplete.partition("model=")
    root = Path((above if model else incomplete.rpartition("/")[0]) or "runs")
    try:
        found = sorted(root.glob("model=*/task=*/method=*"))
    except OSError:
        return []
    return [str(path) for path in found if str(path).startswith(incomplete)]


def listed_names(text: str) -> list[str]:
    """The names that a command's help lists, which a test holds to those there are."""
    listed = text.partition("Names: ")[2].partition(";")[0]
    return [name.strip() for name in listed.split(",")]


def method_names() -> list[str]:
    """Methods, and a beginning of a pair for every rule."""
    return [*METHODS, *(f"{rule}+" for rule in RULE_NAMES.names)]


complete_task = offer(lambda: TASK_NAMES.names, ".yaml", ".yml", kinds=VALUES)
complete_gate = offer(lambda: GATE_NAMES.names, kinds=(ast.ClassDef, *VALUES))
complete_grader = offer(lambda: GRADER_NAMES.names, kinds=FUNCTIONS)
complete_reading = offer(lambda: EXTRACTOR_NAMES.names, kinds=FUNCTIONS)
complete_signal = offer(lambda: SIGNAL_NAMES.names, kinds=FUNCTIONS)
complete_model = offer(lambda: [EMBEDDED, *ALIASES])
complete_source = offer(lambda: ["embedded", "hub"], ".jsonl", ".parquet")
complete_engine = offer(lambda: ["local", "ray", "slurm"])
complete_rule = offer(method_names, kinds=(ast.ClassDef, *VALUES))


def complete_method(incomplete: str) -> list[str]:
    """Methods; behind the plus of a pair, gates."""
    rule, plus, gate = incomplete.rpartition("+")
    if plus:
        return [f"{rule}+{name}" for name in complete_gate(gate)]
    return complete_rule(incomplete)
