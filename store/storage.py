"""The one way to where runs are kept: look, list, read, put whole, remove.

Whoever reads or writes below a folder of runs does it through these functions. Elsewhere a location
is only joined, taken apart and compared, so that another kind of storage needs another set of these
functions and nothing else. A file appears whole or not at all: it is written under a temporary
name, flushed to the disk and renamed.
"""

import errno
import os
import re
import secrets
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path

from c4.errors import ConfigError, RunError
from c4.errors.system import require_plain_file, require_writable_file, require_writable_folder
from c4.store.locations import Location, ObjectPath

LEFTOVER = re.compile(r"(?P<target>.+)\.[0-9a-f]{8}\.tmp", re.DOTALL)
"""The name of a file that is being written; nobody writes it any more if its process is gone."""
ATTEMPTS = 5
"""How often a file is written anew whose temporary copy somebody took for a leftover."""
OWNER = "owner"
"""The file in a folder made once that says who made it."""
NO_LINKS = (errno.EPERM, errno.ENOTSUP, errno.ENOSYS, errno.EMLINK)
"""What file systems say that cannot give a file a second name."""


def _local(location: Location) -> Path:
    if isinstance(location, ObjectPath):
        raise ConfigError(f"{location}: object stores cannot be used yet; give a folder")
    return Path(location)


def file_exists(path: Location) -> bool:
    return _local(path).is_file()


def folder_exists(folder: Location) -> bool:
    return _local(folder).is_dir()


def list_files(folder: Location) -> list[Location]:
    """The whole files of a folder, in order; none where there is no such folder."""
    found = _entries(folder, os.DirEntry.is_file)
    return [path for path in found if not LEFTOVER.fullmatch(path.name)]


def list_folders(folder: Location) -> list[Location]:
    """The folders in a folder, in order."""
    return _entries(folder, os.DirEntry.is_dir)


def list_leftovers(folder: Location) -> list[Location]:
    """What killed processes were writing in a folder, and what living ones are writing now."""
    return [p for p in _entries(folder, os.DirEntry.is_file) if LEFTOVER.fullmatch(p.name)]


def find_folders(root: Location, wanted: Callable[[str], bool]) -> list[Location]:
    """The folders below a root whose names are wanted, in order; nothing is sought inside them."""
    found: list[Location] = []
    for folder in list_folders(root):
        if wanted(folder.name):
            found.append(folder)
        elif not _local(folder).is_symlink():  # which might lead back here
            found += find_folders(folder, wanted)
    return found


def _entries(folder: Location, kind: Callable[["os.DirEntry[str]"], bool]) -> list[Location]:
    try:
        with os.scandir(_local(folder)) as entries:
            return sorted(folder / entry.name for entry in entries if _is(entry, kind))
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        raise RunError(f"{folder}: cannot be listed ({error.strerror})") from error


def _is(entry: "os.DirEntry[str]", kind: Callable[["os.DirEntry[str]"], bool]) -> bool:
    try:
        return kind(entry)
    except OSError:  # a link that leads nowhere
        return False


def read_file(path: Location, at_most: int = -1) -> bytes:
    """The bytes of a file, or the first of them; FileNotFoundError where there is none."""
    try:
        with _local(path).open("rb") as file:
            return file.read(at_most)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise RunError(f"{path}: cannot be read ({error.strerror})") from error


def read_limited(path: Location, most: int) -> bytes:
    """The bytes of a file; ValueError where it is none, or is larger than such a file can be."""
    require_plain_file(_local(path), most)
    return read_file(path)


def size_of(path: Location) -> int:
    """A file's bytes; none if it has just been removed."""
    try:
        return _local(path).stat().st_size
    except FileNotFoundError:
        return 0


def require_writable(folder: Location) -> None:
    """Refuse a place where no results can be kept, before any are computed. Leaves no trace."""
    require_writable_folder(_local(folder))


def require_can_put(path: Location) -> None:
    """Refuse a file that cannot be written, before its content is computed. Leaves no trace."""
    require_writable_file(_local(path))


def put_file(path: Location, data: bytes) -> None:
    """Make a file appear whole or not at all, whatever happens to the machine."""
    _put(_local(path), data, os.rename, flush=True)


def put_once(path: Location, data: bytes) -> bool:
    """Make a file appear whole, unless there is one of that name. Returns whether it did."""
    try:
        _put(_local(path), data, _give_new_name, flush=True)
    except FileExistsError:
        return False
    return True


def note_file(path: Location, data: bytes) -> None:
    """Make a file appear whole or not at all, without waiting for the disk.

    For what is worth nothing after the machine has stopped, such as a sign of life.
    """
    _put(_local(path), data, os.rename, flush=False)


def _put(path: Path, data: bytes, name: Callable[[Path, Path], None], *, flush: bool) -> None:
    for _ in range(ATTEMPTS):
        make_folder(path.parent)
        if _written_and_named(path, data, name, flush=flush):
            if flush:
                _flush_folder(path.parent)
            return
    raise RunError(f"{path}: cannot be written; something removes its temporary copies")


def _written_and_named(
    path: Path, data: bytes, name: Callable[[Path, Path], None], *, flush: bool
) -> bool:
    # A name of its own: two processes may write the same file at once.
    temporary = path.with_name(f"{path.name}.{secrets.token_hex(4)}.tmp")
    try:
        _write_new(temporary, data, flush=flush)
        # The name comes last: one without ".tmp" means that the file is whole.
        name(temporary, path)
    except FileNotFoundError:
        return False
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary)
        raise
    return True


def _give_new_name(temporary: Path, path: Path) -> None:
    """Rename a file, or raise FileExistsError where there is one of that name."""
    try:
        os.link(temporary, path)
    except OSError as error:
        if error.errno not in NO_LINKS:
            raise
        # Two processes may then both find no file. They write the same one, or the second is
        # told by what it reads afterwards.
        if path.exists():
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(path)) from None
        os.rename(temporary, path)
    else:
        os.unlink(temporary)


def _write_new(path: Path, data: bytes, *, flush: bool) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
    try:
        _write_all(descriptor, data)
        if flush:
            os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _write_all(descriptor: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(descriptor, rest) :]


def remove_files(paths: Iterable[Location]) -> None:
    """Remove files, whether or not they are still there, and make that safe on the disk."""
    folders = set()
    for path in map(_local, list(paths)):
        with suppress(FileNotFoundError):
            os.unlink(path)
            folders.add(path.parent)
    for folder in sorted(folders):
        _flush_folder(folder)


def remove_leftovers(folder: Location, ours: Callable[[str], bool]) -> None:
    """Remove what was being written under names of ours when a process was killed.

    A process that is still writing notices and writes its file again.
    """
    left = ((path, LEFTOVER.fullmatch(path.name)) for path in list_leftovers(folder))
    remove_files(path for path, match in left if match and ours(match["target"]))


def make_folder(folder: Location) -> None:
    """Make a folder and its parents, each safe on the disk."""
    folder = _local(folder)
    if not folder.is_dir():
        make_folder(folder.parent)
        try:
            os.mkdir(folder)
        except FileExistsError:  # another process was faster
            if not folder.is_dir():
                raise RunError(f"{folder}: a file of that name is in the way") from None
        _flush_folder(folder.parent)


def make_once(folder: Location, owner: bytes) -> bool:
    """Make a folder that says whose it is, unless there is one. Returns whether it did.

    Of all that try, on any machine that sees the storage, one succeeds. Nothing waits for the disk:
    what is made in this way is worth nothing after the machine has stopped.
    """
    for _ in range(ATTEMPTS):
        make_folder(folder.parent)
        with suppress(FileNotFoundError):  # the folder above has just been removed
            return _made_and_signed(_local(folder), owner)
    raise RunError(f"{folder}: cannot be made; something removes {folder.parent.name}")


def _made_and_signed(folder: Path, owner: bytes) -> bool:
    try:
        os.mkdir(folder)
    except FileExistsError:
        return False
    try:
        _write_new(folder / OWNER, owner, flush=False)
    except FileNotFoundError:  # taken away before it was signed
        return False
    return True


def owner_of(folder: Location) -> bytes | None:
    """Who made a folder; None if nobody did, or has not signed it yet."""
    try:
        return read_file(folder / OWNER)
    except FileNotFoundError:
        return None


def remove_made(folder: Location) -> None:
    """Remove a folder made by `make_once`, whether or not it is still there."""
    with suppress(FileNotFoundError):
        os.unlink(_local(folder) / OWNER)
    remove_empty_folder(folder)


def remove_empty_folder(folder: Location) -> None:
    """Remove a folder if it is there and holds nothing."""
    try:
        os.rmdir(_local(folder))
    except (FileNotFoundError, NotADirectoryError):
        pass
    except OSError as error:
        if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
            raise


def _flush_folder(folder: Path) -> None:
    """Make the names in a folder safe on the disk."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
