"""Loading an object of a user's own by its name."""

import hashlib
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from importlib.machinery import SourceFileLoader
from importlib.metadata import EntryPoint
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

from c4.errors import RAISED, ConfigError, did_you_mean, failure, shortened
from c4.errors.system import exists, reason, require_plain_file, user_path
from c4.errors.text import visible_line
from c4.plugins._source import source_hash

MISSING = object()
NO_FILE = hashlib.sha256().hexdigest()
"""The hash of a module that has no file, such as a built-in one."""
FILE_NAME = re.compile(r"\w[\w .-]*\.py")
"""The name of a Python file that fits into a label."""


@dataclass(frozen=True)
class Plugin:
    """An object that was found by its name."""

    name: str
    """The name that results carry; of a path only the file's name is kept."""
    found: Any
    source_sha256: str | None = None
    """A hash of the files that define it; None for what is c4's own."""

    @property
    def identity(self) -> dict[str, str]:
        """What a manifest keeps of it besides its name: nothing, if it is c4's own."""
        return {} if self.source_sha256 is None else {"source_sha256": self.source_sha256}


def package_of(point: EntryPoint) -> str:
    """The name of the package that offers an object."""
    return "a package" if point.dist is None else f"the package {point.dist.name}"


def is_file_name(module: str) -> bool:
    """Whether the part of a name before its colon is a path and no module."""
    return module.endswith(".py") or "/" in module


def names_file(name: str) -> bool:
    """Whether a name is that of an object in a file that is there."""
    file, _, attribute = name.rpartition(":")
    return attribute.isidentifier() and exists(user_path(file))


def canonical_name(name: str) -> str:
    """What the results of `module:object` go by; a path is shortened to the file's name."""
    module, _, attribute = name.rpartition(":")
    return f"{Path(module).name}:{attribute}" if is_file_name(module) else name


def aliases(name: str) -> set[str]:
    """What `--set` may call an object: by the name that was typed, without its folder or alone."""
    return {name, canonical_name(name), name.rpartition(":")[2]}


def load_offered(noun: str, point: EntryPoint) -> Plugin:
    """The object that an installed package offers. The package's code is run."""
    try:
        found = point.load()
    except RAISED as error:
        raise ConfigError(
            f"cannot load the {noun} {point.name!r} that {package_of(point)} offers as "
            f"{point.value}: {failure(error)}; repair or uninstall it"
        ) from error
    return Plugin(point.name, found, source_hash(point.module) or NO_FILE)


def load_named(noun: str, name: str, example: str, fits: Callable[[Any], bool]) -> Plugin:
    """The object that `module:object` or `file.py:object` names. Its module is run.

    Args:
        fits: whether an object of the module could be meant instead, where this one is missing.
    """
    module, _, attribute = name.rpartition(":")
    of_file = is_file_name(module)
    # A file's own name has to fit into a label.
    is_path = FILE_NAME.fullmatch(Path(module).name) is not None and "\0" not in module
    is_module = all(map(str.isidentifier, module.split(".")))
    if not attribute.isidentifier() or not (is_path if of_file else is_module):
        letters = " (a file's own name has letters, digits, spaces, dots and dashes)"
        raise ConfigError(
            f"cannot load the {noun} {shortened(name)!r}: write module:object, as in {example}, "
            f"or path/to/file.py:object{letters if of_file else ''}"
        )
    try:
        loaded = _load_file(module) if of_file else _import(module)
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
        there = _what_is_there(loaded, noun, attribute, fits)
        where = Path(module).name if of_file else f"the module {module}"
        raise ConfigError(f"{where} has no {noun} named {shortened(attribute)!r}; {there}")
    return Plugin(canonical_name(name), found, source_hash(loaded.__name__) or NO_FILE)


def _advice(error: BaseException, module: str, *, of_file: bool) -> str:
    """What to do about a module that cannot be imported."""
    repair = "repair the file" if of_file else "repair the module"
    missing = error.name if isinstance(error, ModuleNotFoundError) else None
    if missing is None:
        return repair
    if not of_file and f"{module}.".startswith(f"{missing}."):
        return "the module must stand in this folder or be installed"
    package = missing.partition(".")[0]
    return repair if package == module.partition(".")[0] else f"install {package}, or {repair}"


def _what_is_there(
    module: ModuleType, noun: str, attribute: str, fits: Callable[[Any], bool]
) -> str:
    """Names the objects that a module itself defines and that could be meant."""
    names = [
        name
        for name, value in vars(module).items()
        if not name.startswith("_")
        and not isinstance(value, ModuleType)
        # Classes and functions that it imports are not what a user looks for.
        and not (callable(value) and getattr(value, "__module__", None) != module.__name__)
        and fits(value)
    ]
    if not names:
        return f"there is no {noun} in it"
    verb = "is" if len(names) == 1 else "are"
    return did_you_mean(attribute, names) or f"there {verb} {', '.join(names)}"


def _import(module: str) -> ModuleType:
    _look_in(Path.cwd())  # a console script does not look where it is called
    return import_module(module)


def _look_in(folder: Path) -> None:
    if str(folder) not in sys.path:
        sys.path.append(str(folder))


class _SourceLoader(SourceFileLoader):
    """Compiles what the file says now: a cached compilation may be of the file before an edit."""

    def get_code(self, fullname: str) -> CodeType:  # noqa: ARG002 - the signature is Python's
        return self.source_to_code(self.get_data(self.path), self.path)


def _load_file(text: str) -> ModuleType:
    """The module in a file, run once for each content that the file has had."""
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
    _look_in(path.parent)  # for the modules beside it
    sys.modules[name] = module  # dataclasses look their module up
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module
