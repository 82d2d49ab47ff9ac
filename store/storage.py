"""All access to runs on disk or in an object store: query, list, read, write atomically, remove.

All code that reads or writes below a folder of runs uses these functions. Elsewhere a location is
only joined, taken apart and compared. There are two kinds of storage, `folders` and `objects`, and
each docstring here states the guarantees of both.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from c4.errors.system import require_plain_file, require_writable_file, require_writable_folder
from c4.store import folders, objects
from c4.store.locations import Location, ObjectPath

LEFTOVER = re.compile(r"(?P<target>.+)\.[0-9a-f]{8}\.tmp", re.DOTALL)
"""The name of a file that is being written, or that a killed process left behind."""
OWNER = folders.OWNER


def is_remote(location: Location) -> bool:
    """Whether a location is an address in an object store."""
    return isinstance(location, ObjectPath)


def _kind(location: Location) -> Any:
    """Return the module that accesses a location."""
    return objects if isinstance(location, ObjectPath) else folders


def file_exists(path: Location) -> bool:
    if isinstance(path, ObjectPath):
        return objects.size_of(path) is not None
    return Path(path).is_file()


def folder_exists(folder: Location) -> bool:
    """Whether a folder exists; in an object store, whether it contains anything."""
    if isinstance(folder, ObjectPath):
        return any(objects.list_folder(folder))
    return Path(folder).is_dir()


def list_files(folder: Location) -> list[Location]:
    """List the completely written files of a folder, in order; empty if there is no such folder."""
    return [path for path in _list_all_files(folder) if not LEFTOVER.fullmatch(path.name)]


def list_leftovers(folder: Location) -> list[Location]:
    """List a folder's temporary files, of killed processes and of those still writing."""
    return [path for path in _list_all_files(folder) if LEFTOVER.fullmatch(path.name)]


def _list_all_files(folder: Location) -> Sequence[Location]:
    files: Sequence[Location] = _kind(folder).list_files(folder)
    return files


def list_folders(folder: Location) -> list[Location]:
    """List the folders in a folder, in order."""
    found: list[Location] = _kind(folder).list_folders(folder)
    return found


def find_folders(root: Location, wanted: Callable[[str], bool]) -> list[Location]:
    """Find the folders below a root whose names are wanted, in order; do not search inside them."""
    found: list[Location] = []
    for folder in list_folders(root):
        if wanted(folder.name):
            found.append(folder)
        elif is_remote(folder) or not Path(folder).is_symlink():  # a link might lead back here
            found += find_folders(folder, wanted)
    return found


def read_file(path: Location, at_most: int | None = None) -> bytes:
    """Return a file's bytes, or the first `at_most`; raise FileNotFoundError if it is missing."""
    data: bytes = _kind(path).read(path, at_most)
    return data


def read_limited(path: Location, most: int) -> bytes:
    """Return a file's bytes; raise ValueError if it is not a plain file or is over `most` bytes."""
    if not is_remote(path):
        require_plain_file(Path(path), most)
    elif (size := size_of(path)) > most:
        raise ValueError(f"{size:,} bytes are too many")
    return read_file(path)


def size_of(path: Location) -> int:
    """Return a file's size in bytes; 0 if it does not exist."""
    return _kind(path).size_of(path) or 0


def sizes_in(folder: Location) -> list[tuple[Location, int]]:
    """Return every file in a folder with its size in bytes."""
    if isinstance(folder, ObjectPath):
        return [*objects.list_folder(folder)[0].items()]
    return [(path, size_of(path)) for path in _list_all_files(folder)]


def require_writable(folder: Location) -> None:
    """Refuse a folder that cannot be written, before results are computed. Leaves no trace."""
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
    """Write a file atomically, so that it is whole or absent even if the machine crashes."""
    _kind(path).put_file(path, data)


def put_once(path: Location, data: bytes) -> bool:
    """Write a file atomically unless one of that name exists. Returns whether it was written."""
    was_put: bool = _kind(path).put_once(path, data)
    return was_put


def note_file(path: Location, data: bytes) -> None:
    """Write a file atomically, without waiting for the disk.

    For data that has no value after the machine has stopped, such as a sign of life.
    """
    _kind(path).note_file(path, data)


def remove_files(paths: Iterable[Location]) -> None:
    """Remove files, ignoring missing ones, and flush the removal to the disk."""
    paths = list(paths)
    folders.remove_files(Path(path) for path in paths if not isinstance(path, ObjectPath))
    objects.remove_files(path for path in paths if isinstance(path, ObjectPath))


def remove_leftovers(folder: Location, ours: Callable[[str], bool]) -> None:
    """Remove temporary files that killed processes left, for target names that `ours` accepts.

    A process that is still writing notices and writes its file again. An object store never lists
    files that are being written.
    """
    if not is_remote(folder):
        left = ((path, LEFTOVER.fullmatch(path.name)) for path in list_leftovers(folder))
        remove_files(path for path, match in left if match and ours(match["target"]))


def make_once(folder: Location, owner: bytes) -> bool:
    """Make a folder signed by its owner, unless it exists. Returns whether it was made.

    Of all processes that try, on any machine that sees the storage, one succeeds. This does not
    wait for the disk, because such a folder has no value after the machine has stopped.

    Args:
        owner: a text unique to the caller.
    """
    if isinstance(folder, ObjectPath):
        return objects.sign_once(folder / OWNER, owner)
    return folders.make_once(Path(folder), owner)


def owner_of(folder: Location) -> bytes | None:
    """Return the owner of a folder made by `make_once`; None if missing or not signed yet."""
    try:
        return read_file(folder / OWNER)
    except FileNotFoundError:
        return None


def remove_made(folder: Location) -> None:
    """Remove a folder made by `make_once`, if it is still there."""
    if isinstance(folder, ObjectPath):
        objects.remove_files([folder / OWNER])
    else:
        folders.remove_made(Path(folder))


def remove_empty_folder(folder: Location) -> None:
    """Remove a folder if it exists and is empty. An object store has no empty folders."""
    if not is_remote(folder):
        folders.remove_empty_folder(Path(folder))
