"""All access to runs on disk or in an object store: look, list, read, put whole, remove.

Whoever reads or writes below a folder of runs does it through these functions. Elsewhere a location
is only joined, taken apart and compared. There are two kinds of storage, `folders` and `objects`,
and each function here says what both of them promise.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from c4.errors.system import require_plain_file, require_writable_file, require_writable_folder
from c4.store import folders, objects
from c4.store.locations import Location, ObjectPath

LEFTOVER = re.compile(r"(?P<target>.+)\.[0-9a-f]{8}\.tmp", re.DOTALL)
"""The name of a file that is being written; nobody writes it any more if its process is gone."""
OWNER = folders.OWNER


def is_remote(location: Location) -> bool:
    """Whether it is the address of an object store."""
    return isinstance(location, ObjectPath)


def _kind(location: Location) -> Any:
    """The module that reaches a location."""
    return objects if isinstance(location, ObjectPath) else folders


def file_exists(path: Location) -> bool:
    if isinstance(path, ObjectPath):
        return objects.size_of(path) is not None
    return Path(path).is_file()


def folder_exists(folder: Location) -> bool:
    """Whether there is a folder; in an object store, whether anything lies below its address."""
    if isinstance(folder, ObjectPath):
        return any(objects.list_folder(folder))
    return Path(folder).is_dir()


def list_files(folder: Location) -> list[Location]:
    """The whole files of a folder, in order; none where there is no such folder."""
    return [path for path in _list_all_files(folder) if not LEFTOVER.fullmatch(path.name)]


def list_leftovers(folder: Location) -> list[Location]:
    """What killed processes were writing in a folder, and what living ones are writing now."""
    return [path for path in _list_all_files(folder) if LEFTOVER.fullmatch(path.name)]


def _list_all_files(folder: Location) -> Sequence[Location]:
    files: Sequence[Location] = _kind(folder).list_files(folder)
    return files


def list_folders(folder: Location) -> list[Location]:
    """The folders in a folder, in order."""
    found: list[Location] = _kind(folder).list_folders(folder)
    return found


def find_folders(root: Location, wanted: Callable[[str], bool]) -> list[Location]:
    """The folders below a root whose names are wanted, in order; nothing is sought inside them."""
    found: list[Location] = []
    for folder in list_folders(root):
        if wanted(folder.name):
            found.append(folder)
        elif is_remote(folder) or not Path(folder).is_symlink():  # a link might lead back here
            found += find_folders(folder, wanted)
    return found


def read_file(path: Location, at_most: int | None = None) -> bytes:
    """The bytes of a file, or the first of them; FileNotFoundError where there is none."""
    data: bytes = _kind(path).read(path, at_most)
    return data


def read_limited(path: Location, most: int) -> bytes:
    """The bytes of a file; ValueError where it is none, or is larger than such a file can be."""
    if not is_remote(path):
        require_plain_file(Path(path), most)
    elif (size := size_of(path)) > most:
        raise ValueError(f"{size:,} bytes are too many")
    return read_file(path)


def size_of(path: Location) -> int:
    """A file's bytes; none if it has just been removed."""
    return _kind(path).size_of(path) or 0


def sizes_in(folder: Location) -> list[tuple[Location, int]]:
    """Every file in a folder, with its bytes."""
    if isinstance(folder, ObjectPath):
        return [*objects.list_folder(folder)[0].items()]
    return [(path, size_of(path)) for path in _list_all_files(folder)]


def require_writable(folder: Location) -> None:
    """Refuse a place where no results can be kept, before any are computed. Leaves no trace."""
    if isinstance(folder, ObjectPath):
        objects.list_folder(folder)  # fails if there is no such bucket
    else:
        require_writable_folder(Path(folder))


def require_can_put(path: Location) -> None:
    """Refuse a file that cannot be written, before its content is computed. Leaves no trace."""
    if isinstance(path, ObjectPath):
        objects.list_folder(path)  # fails if there is no such bucket
    else:
        require_writable_file(Path(path))


def put_file(path: Location, data: bytes) -> None:
    """Make a file appear whole or not at all, whatever happens to the machine."""
    _kind(path).put_file(path, data)


def put_once(path: Location, data: bytes) -> bool:
    """Make a file appear whole, unless there is one of that name. Returns whether it did."""
    was_put: bool = _kind(path).put_once(path, data)
    return was_put


def note_file(path: Location, data: bytes) -> None:
    """Make a file appear whole or not at all, without waiting for the disk.

    For what is worth nothing after the machine has stopped, such as a sign of life.
    """
    _kind(path).note_file(path, data)


def remove_files(paths: Iterable[Location]) -> None:
    """Remove files, whether or not they are still there, and make that safe on the disk."""
    paths = list(paths)
    folders.remove_files(Path(path) for path in paths if not isinstance(path, ObjectPath))
    objects.remove_files(path for path in paths if isinstance(path, ObjectPath))


def remove_leftovers(folder: Location, ours: Callable[[str], bool]) -> None:
    """Remove what was being written under names of ours when a process was killed.

    A process that is still writing notices and writes its file again. An object store never shows
    what is being written.
    """
    if not is_remote(folder):
        left = ((path, LEFTOVER.fullmatch(path.name)) for path in list_leftovers(folder))
        remove_files(path for path, match in left if match and ours(match["target"]))


def make_once(folder: Location, owner: bytes) -> bool:
    """Make a folder that says whose it is, unless there is one. Returns whether it did.

    Of all that try, on any machine that sees the storage, one succeeds. Nothing waits for the disk:
    what is made in this way is worth nothing after the machine has stopped.

    Args:
        owner: a text that nobody else gives.
    """
    if isinstance(folder, ObjectPath):
        return objects.sign_once(folder / OWNER, owner)
    return folders.make_once(Path(folder), owner)


def owner_of(folder: Location) -> bytes | None:
    """The owner of a folder made by `make_once`; None if it has none, or none yet."""
    try:
        return read_file(folder / OWNER)
    except FileNotFoundError:
        return None


def remove_made(folder: Location) -> None:
    """Remove a folder made by `make_once`, whether or not it is still there."""
    if isinstance(folder, ObjectPath):
        objects.remove_files([folder / OWNER])
    else:
        folders.remove_made(Path(folder))


def remove_empty_folder(folder: Location) -> None:
    """Remove a folder if it is there and holds nothing. An object store keeps no such folders."""
    if not is_remote(folder):
        folders.remove_empty_folder(Path(folder))
