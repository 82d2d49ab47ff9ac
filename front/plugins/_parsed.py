"""What a Python file defines, told by parsing it: nothing of it is run."""

import ast
from collections.abc import Iterable
from pathlib import Path

from c4.errors import ConfigError, shortened, unknown_name
from c4.errors.system import user_path

Definition = ast.ClassDef | ast.FunctionDef | ast.Assign | ast.AnnAssign
"""What gives an object of a file its name."""
ANY = (ast.ClassDef, ast.FunctionDef, ast.Assign, ast.AnnAssign)
LISTED = 5
"""Objects of a file that a hint names."""


def defined_names(file: Path, kinds: tuple[type, ...] = ANY) -> list[str]:
    """Public names that a file defines; none of a file that cannot be read.

    Args:
        kinds: what defines an object that may be meant, such as `ast.ClassDef`.
    """
    try:
        if not file.is_file():  # reading a pipe would wait
            return []
        body = ast.parse(file.read_bytes()).body
    except (OSError, ValueError, SyntaxError, RecursionError, MemoryError):
        return []
    found = [node for node in body if isinstance(node, Definition) and isinstance(node, kinds)]
    return [name for node in found for name in _names(node) if not name.startswith("_")]


def _names(node: Definition) -> list[str]:
    if isinstance(node, ast.ClassDef | ast.FunctionDef):
        return [node.name]
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    return [target.id for target in targets if isinstance(target, ast.Name)]


def unknown_object(noun: str, name: str, known: Iterable[str], also: str) -> ConfigError:
    """An error for an unknown name; that of a Python file is answered with what the file defines.

    Args:
        also: how else an object may be named.
    """
    file = name if name.endswith(".py") else f"{name}.py"
    names = defined_names(user_path(file))
    if not names:
        return unknown_name(noun, name, known, also=also)
    there = ", ".join(names[:LISTED]) + (", …" if len(names) > LISTED else "")
    among = f" ({file} defines {there})" if len(names) > 1 else ""
    return ConfigError(
        f"no {noun} named {shortened(name)!r}; name an object of that file, as in "
        f"{file}:{names[0]}{among}"
    )
