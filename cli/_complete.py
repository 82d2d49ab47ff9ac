"""Values that a shell offers when Tab is pressed: names, and the runs in this folder.

Nothing here loads torch or reads a file of a run; users' own code is never loaded.
"""

from collections.abc import Callable, Iterable
from pathlib import Path

from c4.gates.own_signals import REGISTRY as SIGNAL_NAMES
from c4.gates.registry import REGISTRY as GATE_NAMES
from c4.models import ALIASES, EMBEDDED
from c4.record.methods import METHODS, RULE_NAMES
from c4.tasks.extractors import REGISTRY as EXTRACTOR_NAMES
from c4.tasks.graders import REGISTRY as GRADER_NAMES
from c4.tasks.registry import REGISTRY as TASK_NAMES

Completer = Callable[[str], list[str]]


def offer(known: Callable[[], Iterable[str]], *suffixes: str) -> Completer:
    """A function that completes names, and files of some kinds in the current folder."""

    def complete(incomplete: str) -> list[str]:
        files = _files(incomplete, suffixes)
        return [name for name in dict.fromkeys([*known(), *files]) if name.startswith(incomplete)]

    return complete


def _files(incomplete: str, suffixes: tuple[str, ...]) -> list[str]:
    folder = Path(incomplete).parent
    try:
        found = sorted(path for path in folder.iterdir() if path.suffix in suffixes)
    except OSError:
        return []
    return [f"{path}:" if path.suffix == ".py" else str(path) for path in found]


def run_folders(incomplete: str) -> list[str]:
    """The folders of runs below `runs`, or below the folder that was typed."""
    root = Path(incomplete.partition("model=")[0] or "runs")
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


complete_task = offer(lambda: TASK_NAMES.names, ".py", ".yaml", ".yml")
complete_gate = offer(lambda: GATE_NAMES.names, ".py")
complete_grader = offer(lambda: GRADER_NAMES.names, ".py")
complete_reading = offer(lambda: EXTRACTOR_NAMES.names, ".py")
complete_signal = offer(lambda: SIGNAL_NAMES.names, ".py")
complete_model = offer(lambda: [EMBEDDED, *ALIASES])


def complete_method(incomplete: str) -> list[str]:
    """Methods; behind the plus of a pair, gates."""
    rule, plus, gate = incomplete.rpartition("+")
    if plus:
        return [f"{rule}+{name}" for name in complete_gate(gate)]
    return offer(method_names, ".py")(incomplete)
