"""Every command, option and default of `c4`, as JSON, and what differs between two such files.

    python benchmarks/command_surface.py > before.json
    python benchmarks/command_surface.py > after.json
    python benchmarks/command_surface.py before.json after.json

Run it in an old and in a new checkout. What is gone, or has another default or another name, is
listed first and makes the exit code 1; help texts that differ follow, and are for a reader.
"""

import importlib
import json
import sys
from enum import Enum
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

from typer.main import get_command

WORDING = ("help", "metavar")
"""What may change without anybody's script noticing."""


def surface() -> dict[str, dict[str, Any]]:
    """What each command and each of its options promises, by `command option`."""
    try:
        module = importlib.import_module("c4.cli.app")
    except ModuleNotFoundError:  # as it was called until 0.1
        module = importlib.import_module("c4.cli._app")
    return dict(walk("c4", get_command(module.app)))


def walk(name: str, command: Any) -> Any:
    """A command, its options, and the commands below it."""
    yield name, {"help": command.help}
    for option in command.params:
        names = sorted([*option.opts, *option.secondary_opts])
        kind = getattr(option, "type_descriptor", None)
        described = getattr(kind, "annotation", None) or option.type  # older typer has no former
        facts = {
            "names": names,
            "default": str(option.default),
            "type": names_of(described),
            "bounds": [getattr(option, "min", None), getattr(option, "max", None)],
            "required": option.required,
            "multiple": option.multiple or option.nargs != 1,
            "flag": getattr(option, "is_flag", False),
            "metavar": option.metavar,
            "help": getattr(option, "help", None),
        }
        yield f"{name} {names[0]}", facts
    for inner, below in sorted(getattr(command, "commands", {}).items()):
        yield from walk(f"{name} {inner}", below)


def names_of(kind: Any) -> str:
    """A type as text; the words that it takes, where it takes only some."""
    words = get_args(kind) if get_origin(kind) is Literal else ()
    if isinstance(kind, type) and issubclass(kind, Enum):
        words = [member.value for member in kind]
    return " or ".join(words) or str(kind)


def compare(before: dict[str, dict[str, Any]], after: dict[str, dict[str, Any]]) -> int:
    """Print what differs. Returns 1 if more than words do."""
    lost = [f"gone: {name}" for name in before if name not in after]
    new = [f"new: {name}" for name in after if name not in before]
    words = []
    for name in before.keys() & after.keys():
        for key, old in before[name].items():
            if old != after[name].get(key):
                found = words if key in WORDING else lost
                found.append(f"{name}: {key}\n  - {old}\n  + {after[name].get(key)}")
    print("\n".join([*lost, *new, *sorted(words)]))
    return int(bool(lost))


if __name__ == "__main__":
    if len(sys.argv) == 3:
        sys.exit(compare(*(json.loads(Path(path).read_text()) for path in sys.argv[1:])))
    json.dump(surface(), sys.stdout, indent=1)
