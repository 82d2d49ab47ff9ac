"""What an object was made from: its module's source, and that of the modules beside it.

Results go by hashes of it, so that none is taken for that of an earlier or a later version.
"""

import ast
import hashlib
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass
from functools import cache
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any
from uuid import uuid4

from c4.errors import ConfigError

KNOWN_LOADERS = {"_frozen_importlib_external", "c4.plugins._load"}
"""Modules of loaders that compile a file as it is."""
PLAIN = (type(None), bool, int, float, complex, str, bytes)
"""What a function may hold besides its code, if the two are to be told from their text."""
OWN_PACKAGE = "c4"
"""Whose modules are known to be as they were released, or have hashes of their own."""
INSTALLED = {"site-packages", "dist-packages"}
"""Folders of packages that have nothing to do with each other."""


def source_hash(found: Any, named: str) -> str:
    """A hash of the files of an object: the module that was named, and the one that defines it.

    What they import from their own folder or package counts too; what others wrote does not.
    """
    kind = found if isinstance(getattr(found, "__module__", None), str) else type(found)
    names = dict.fromkeys([named, type(found).__module__, kind.__module__])
    digest = hashlib.sha256()
    for name in names:
        digest.update(_source(name) or b"")
    return digest.hexdigest()


def definition(function: Callable[..., Any]) -> str:
    """Text that changes whenever a callable does, and that no other callable has.

    One that cannot be told so (of a notebook, which has no file; an object that is not a
    dataclass; of a file that was edited while this process ran) gets a new text every time, so
    nothing that was kept is taken for its own.
    """
    told, source = _told_apart(function), _known(function.__module__)
    if told is None or source is None or not source.is_unchanged:
        return uuid4().hex
    return f"{told} {hashlib.sha256(source.content).hexdigest()}"


def _told_apart(function: Any) -> str | None:
    """What tells a callable from all others of its module; None if nothing is known to."""
    if isinstance(function, FunctionType):
        code, named = function.__code__, function.__kwdefaults__ or {}
        held = [cell.cell_contents for cell in function.__closure__ or ()]
        held += [function.__defaults__, *named.items()]
        places = repr([*code.co_positions()])  # of two in one line they differ
        told = f"{function.__qualname__} {hashlib.sha256(places.encode()).hexdigest()} {held}"
        return told if _is_plain(held) else None
    if isinstance(function, type):
        return function.__qualname__
    if is_dataclass(function) and all(spec.repr for spec in fields(function) if spec.compare):
        return repr(function)
    return None


def _is_plain(value: Any) -> bool:
    if isinstance(value, list | tuple):
        return all(map(_is_plain, value))
    return type(value) in PLAIN


@dataclass(frozen=True)
class _Source:
    """What a module was made from, as far as this process can know."""

    spec: ModuleSpec | None
    content: bytes
    stamps: Mapping[Path, int]
    """When its file, and the files that it imports, were last changed, in nanoseconds."""
    is_sure: bool
    """Whether the module surely is what these files say."""

    @property
    def is_unchanged(self) -> bool:
        """Whether it surely is what the files say, and they say it still."""
        return self.is_sure and all(_stamp(path) == stamp for path, stamp in self.stamps.items())


_SOURCES: dict[int, _Source] = {}
"""Sources of modules, as they were when a module was first looked at, by the identity of its spec:
every loading and reloading of a module makes a new one."""


def know_source(module: ModuleType) -> None:
    """Look at a module that c4 has loaded just now, so that it surely is what its file says."""
    _look_at(module, is_fresh=True)


def _source(name: str) -> bytes | None:
    """The source of a loaded module, also if its file was edited since; None if it has no file."""
    found = _known(name)
    return None if found is None else found.content


def _known(name: str) -> _Source | None:
    module = sys.modules.get(name)
    if module is None or getattr(module, "__file__", None) is None:
        return None
    return _look_at(module)


def _look_at(module: ModuleType, *, is_fresh: bool = False) -> _Source:
    spec = module.__spec__
    if id(spec) in _SOURCES:
        return _SOURCES[id(spec)]
    content, files = _read_all(module)
    stamps = {path: _stamp(path) for path in files}
    # A user's own import may have been of what a file said before it was edited.
    is_sure = is_fresh or max(stamps.values()) < _process_began() * 1e9
    found = _Source(spec, content, stamps, is_sure)
    if spec is not None:  # else it is a script that is run
        _SOURCES[id(spec)] = found
    return found


def _stamp(path: Path) -> int:
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return 0


IMPORTED = time.time()


@cache
def _process_began() -> float:
    """When this process was started; where the system does not tell, when c4 was imported."""
    try:
        ticks = int(Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19])
        up = float(Path("/proc/uptime").read_text().split()[0])
    except (OSError, ValueError, IndexError):
        return IMPORTED
    return time.time() - up + ticks / os.sysconf("SC_CLK_TCK")


def _read_all(module: ModuleType) -> tuple[bytes, list[Path]]:
    """A module's source with that of the files beside it which it imports, and all these files."""
    file = Path(str(module.__file__))
    source = file.read_bytes()
    package = (module.__package__ or "").partition(".")[0]
    if file.suffix != ".py" or package == OWN_PACKAGE:
        return source, [file]
    if not _is_what_was_loaded(module, source):
        raise ConfigError(
            f"{file.name} was edited after it was imported, so results would be taken for those of "
            "what it says now; import it again, in a new process or with importlib.reload"
        )
    beside = _imported(file, source, _root_of(file, module.__package__ or ""), package)
    return b"".join([source, *(beside[path] for path in sorted(beside))]), [file, *beside]


def _is_what_was_loaded(module: ModuleType, source: bytes) -> bool:
    """Whether a loaded module's functions are those that its file defines now."""
    if type(getattr(module.__spec__, "loader", None)).__module__ not in KNOWN_LOADERS:
        return True  # pytest, for one, loads something else than the file says
    defined, codes = set(), [compile(source, str(module.__file__), "exec", dont_inherit=True)]
    while codes:
        inner = [value for value in codes.pop().co_consts if isinstance(value, CodeType)]
        defined.update(inner)
        codes += inner
    return all(code in defined for code in _codes_of(module))


def _codes_of(module: ModuleType) -> Iterator[CodeType]:
    """The code of a module's own functions and methods, but for what others made for it."""
    values = list(vars(module).values())
    classes = [value for value in values if isinstance(value, type)]
    for value in [*values, *(inside for kind in classes for inside in vars(kind).values())]:
        code = getattr(value, "__code__", None)
        is_its_own = getattr(value, "__module__", None) == module.__name__
        if is_its_own and isinstance(code, CodeType) and code.co_filename == module.__file__:
            yield code


def _root_of(file: Path, package: str) -> Path:
    """The folder in which absolute imports of a module's own begin."""
    return file.resolve().parents[len(package.split(".")) if package else 0]


def _imported(file: Path, source: bytes, root: Path, package: str) -> dict[Path, bytes]:
    """The files of a user's own that one imports, directly or not, with their content."""
    found: dict[Path, bytes] = {}
    todo = [(file.resolve(), source)]
    while todo:
        for path in _imports(*todo.pop(), root, package):
            if path != file.resolve() and path not in found:
                found[path] = path.read_bytes()
                todo.append((path, found[path]))
    return found


def _imports(file: Path, source: bytes, root: Path, package: str) -> Iterator[Path]:
    """The files below a root that a source imports by name."""
    alone = not package and INSTALLED & set(root.parts)
    for node in ast.walk(ast.parse(source)) if not alone else ():
        if isinstance(node, ast.Import):
            yield from (path for one in node.names for path in _files_of(root, one.name, package))
        elif isinstance(node, ast.ImportFrom):
            folder = file.parents[node.level - 1] if node.level else root
            inside = "" if node.level else package
            within = [".".join(filter(None, [node.module, one.name])) for one in node.names]
            for name in filter(None, [node.module, *within]):
                yield from _files_of(folder, name, inside)


def _files_of(folder: Path, name: str, package: str) -> Iterator[Path]:
    """The file of a module below a folder, if it is there; of a package, if one is given."""
    if package and name.partition(".")[0] != package:
        return
    place = folder
    for part in name.split("."):  # a module, and the packages that it is in
        place = place / part
        files = (place.parent / f"{part}.py", place / "__init__.py")
        yield from (path for path in files if path.is_file())
