"""The source of a user's object: the file that defines it, and its imports from the same folder.

Results are labelled with a hash of the source, so an edited gate is never mistaken for its earlier
version. A module's source is read once, on first use; after an edit, the user must reload the
module or start a new process.
"""

import ast
import hashlib
import sys
from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass
from importlib.machinery import ModuleSpec
from inspect import unwrap
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any
from uuid import uuid4

OWN_PACKAGE = "c4"
"""Package whose modules are identified by c4's version, so their imports are not hashed."""
INSTALLED = {"site-packages", "dist-packages"}
"""Folders that contain unrelated packages."""
_HASHES: dict[int, tuple[ModuleSpec, str]] = {}
"""Hashes by the identity of a module's spec: each import and each reload makes a new spec."""


def source_hash(module_name: str) -> str | None:
    """SHA-256 of a loaded module's file and of the files that it imports from its own folder.

    For a module of a package, imports from that package count instead. None if there is no file, as
    in a notebook.
    """
    module = sys.modules.get(module_name)
    if module is None or not getattr(module, "__file__", None):
        return None
    spec = module.__spec__
    if spec is None:  # a running script
        return _read_hash(module)
    if id(spec) not in _HASHES:
        _HASHES[id(spec)] = (spec, _read_hash(module))
    return _HASHES[id(spec)][1]


def definition(function: Callable[..., Any]) -> str:
    """Unique cache key of a callable: its name and its module's hash.

    A callable that cannot be found by name (a lambda, a closure, a notebook function) gets a new
    key every time, so its results are never reused.
    """
    inner = unwrap(function)
    source = source_hash(inner.__module__)
    if isinstance(inner, FunctionType | type):
        module, name = sys.modules.get(inner.__module__), inner.__qualname__
        is_found = getattr(module, name, None) is inner
    else:
        name = repr(inner)
        is_found = is_dataclass(inner) and all(spec.repr for spec in fields(inner) if spec.compare)
    return f"{name} {source}" if is_found and source else uuid4().hex


def _read_hash(module: ModuleType) -> str:
    file = Path(str(module.__file__)).resolve()
    digest = hashlib.sha256(file.read_bytes())
    package = module.__package__ or ""
    if file.suffix != ".py" or package.partition(".")[0] == OWN_PACKAGE:
        return digest.hexdigest()
    folder = file.parents[len(package.split(".")) if package else 0]
    only = package.partition(".")[0] or (file.stem if INSTALLED & set(folder.parts) else "")
    for path in sorted(_imported_files(file, folder, only) - {file}):
        digest.update(path.read_bytes())
    return digest.hexdigest()


def _imported_files(file: Path, folder: Path, only: str) -> set[Path]:
    """Files below a folder that a Python file imports, directly or indirectly.

    Args:
        only: the only package or module whose absolute imports count; empty for all.
    """
    found, todo = {file}, [file]
    while todo:
        path = todo.pop()
        for node in ast.walk(ast.parse(path.read_bytes())):
            base, names = folder, []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                base = path.parents[node.level - 1] if node.level else folder
                inside = [node.module] if node.module else []
                names = [".".join([*inside, alias.name]) for alias in node.names]
            for name in names:
                if base != folder or only in ("", name.partition(".")[0]):
                    new = set(_files_of(base, name)) - found
                    found |= new
                    todo += new
    return found


def _files_of(folder: Path, name: str) -> Iterator[Path]:
    """Yield the files that Python runs to import a dotted name from a folder."""
    parts = name.split(".")
    for place in (folder.joinpath(*parts[: i + 1]) for i in range(len(parts))):
        for path in (place.with_suffix(".py"), place / "__init__.py"):
            if path.is_file():
                yield path
