"""Load a user's own object by name; if it is not found, suggest the available names."""

import ast
import hashlib
import re
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from importlib import import_module
from importlib.machinery import SourceFileLoader
from importlib.metadata import EntryPoint
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

from c4.errors import RAISED, ConfigError, did_you_mean, failure, shortened, unknown_name
from c4.errors.system import exists, reason, require_plain_file, user_path
from c4.errors.text import visible_line
from c4.plugins._source import source_hash

MISSING = object()
NO_FILE = hashlib.sha256().hexdigest()
"""Hash for a module without a file, such as a built-in one."""
FILE_NAME = re.compile(r"\w[\w .-]*\.py")
"""Names of Python files that may be part of a label."""
LISTED = 5
"""Maximum number of a file's objects that a hint lists."""


@dataclass(frozen=True)
class Plugin:
    """An object that was found by name."""

    name: str
    """Name in results; a path is reduced to the file's name."""
    found: Any
    source_sha256: str | None = None
    """Hash of the files that define the object; None for c4's own."""

    @property
    def identity(self) -> dict[str, str]:
        """Entries of a manifest besides the name; empty for c4's own objects."""
        return {} if self.source_sha256 is None else {"source_sha256": self.source_sha256}


def package_of(point: EntryPoint) -> str:
    """Name of the package that offers an object, for messages."""
    return "a package" if point.dist is None else f"the package {point.dist.name}"


def is_file_name(module: str) -> bool:
    """Whether the part of a name before the colon is a path rather than a module."""
    return module.endswith(".py") or "/" in module


def names_file(name: str) -> bool:
    """Whether a name refers to an object in an existing file."""
    file, _, attribute = name.rpartition(":")
    return attribute.isidentifier() and exists(user_path(file))


def canonical_name(name: str) -> str:
    """Name of `module:object` in results; a path is shortened to the file's name."""
    module, _, attribute = name.rpartition(":")
    return f"{Path(module).name}:{attribute}" if is_file_name(module) else name


def aliases(name: str) -> set[str]:
    """Names of an object in `--set`: as typed, without the folder, or the object's name alone."""
    return {name, canonical_name(name), name.rpartition(":")[2]}


def load_offered(noun: str, point: EntryPoint) -> Plugin:
    """Load the object that an installed package offers. The package's code is run."""
    try:
        found = point.load()
    except RAISED as error:
        raise ConfigError(
            f"cannot load the {noun} {point.name!r} that {package_of(point)} offers as "
            f"{point.value}: {failure(error)}; repair or uninstall it"
        ) from error
    return Plugin(point.name, found, source_hash(point.module) or NO_FILE)


def load_named(noun: str, name: str, example: str) -> Plugin:
    """Load the object that `module:object` or `file.py:object` names. Its module is run."""
    module, _, attribute = name.rpartition(":")
    of_file = is_file_name(module)
    # A file's name must be valid in a label.
    is_path = FILE_NAME.fullmatch(Path(module).name) is not None and "\0" not in module
    is_module = all(map(str.isidentifier, module.split(".")))
    if not attribute.isidentifier() or not (is_path if of_file else is_module):
        letters = " (a file's own name has letters, digits, spaces, dots and dashes)"
        raise ConfigError(
            f"cannot load the {noun} {shortened(name)!r}: write module:object, as in {example}, "
            f"or path/to/file.py:object{letters if of_file else ''}"
        )
    try:
        if of_file:
            loaded = _load_file(module)
        else:
            _look_in(Path.cwd())  # console scripts do not search the current folder
            loaded = import_module(module)
        found = getattr(loaded, attribute, MISSING)
    except ConfigError:
        raise
    except RAISED as error:
        what = shortened(str(error)) if isinstance(error, ImportError) else failure(error)
        advice = _advice(error, module, of_file=of_file)
        raise ConfigError(
            f"cannot load the {noun} {shortened(name)!r}: {what}; {advice}"
        ) from error
    if found is MISSING:
        names = defined_names(Path(str(loaded.__file__)))
        there = did_you_mean(attribute, names) or f"it defines {', '.join(names) or 'nothing'}"
        where = Path(module).name if of_file else f"the module {module}"
        raise ConfigError(f"{where} has no {noun} named {shortened(attribute)!r}; {there}")
    return Plugin(canonical_name(name), found, source_hash(loaded.__name__) or NO_FILE)


def _advice(error: BaseException, module: str, *, of_file: bool) -> str:
    """Suggest what to do about a module that cannot be imported."""
    missing = error.name if isinstance(error, ModuleNotFoundError) else None
    if missing and not of_file and f"{module}.".startswith(f"{missing}."):
        return "the module must be in this folder or be installed"
    repair = "repair the file" if of_file else "repair the module"
    package = (missing or "").partition(".")[0]
    known = package in ("", module.partition(".")[0])
    return repair if known else f"install {package}, or {repair}"


def defined_names(file: Path, kinds: tuple[type, ...] = (ast.stmt,)) -> list[str]:
    """Parse a Python file and list the public names it defines; empty if it cannot be read.

    Args:
        kinds: statements whose names to include, such as `ast.ClassDef`.
    """
    try:
        if not file.is_file():  # reading a pipe would wait
            return []
        body = [node for node in ast.parse(file.read_bytes()).body if isinstance(node, kinds)]
    except (OSError, ValueError, SyntaxError, RecursionError, MemoryError):
        return []
    names = []
    for node in body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef):
            names.append(node.name)
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names += [target.id for target in targets if isinstance(target, ast.Name)]
    return [name for name in names if not name.startswith("_")]


def unknown_object(noun: str, name: str, known: Iterable[str], also: str) -> ConfigError:
    """Make an error for an unknown name; for a Python file, it lists the file's objects.

    Args:
        also: other ways to name an object, for the message.
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


def _look_in(folder: Path) -> None:
    if str(folder) not in sys.path:
        sys.path.append(str(folder))


class _SourceLoader(SourceFileLoader):
    """Compiles the current source: cached bytecode may be from before an edit."""

    def get_code(self, fullname: str) -> CodeType:  # noqa: ARG002 - the signature is Python's
        return self.source_to_code(self.get_data(self.path), self.path)


def _load_file(text: str) -> ModuleType:
    """Load a file as a module, which runs once for each version of its content."""
    path = user_path(text)
    try:
        require_plain_file(path)
        path = path.resolve()
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
    except (OSError, ValueError) as error:
        raise ConfigError(f"{visible_line(text)}: cannot be read ({reason(error)})") from error
    place = hashlib.sha256(str(path).encode()).hexdigest()
    name = f"c4_plugin_{place[:8]}_{digest[:16]}"
    if name in sys.modules:
        return sys.modules[name]
    spec = spec_from_loader(name, _SourceLoader(name, str(path)))
    if spec is None or spec.loader is None:
        raise ConfigError(f"{path}: cannot be loaded as Python")
    module = module_from_spec(spec)
    _look_in(path.parent)  # for imports from the same folder
    sys.modules[name] = module  # dataclasses look their module up
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module
