"""Folders of this machine, or ones that it shares with others, as storage.

A file appears whole or not at all: it is written under a temporary name, flushed to the disk and
renamed. What is made only once is a folder, because `mkdir` succeeds for one process alone, on
network file systems too.
"""

import errno
import os
import secrets
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path

from c4.errors import RunError

ATTEMPTS = 5
"""How often a file is written anew whose temporary copy somebody took for a leftover."""
OWNER = "owner"
"""The file in a folder made once that says who made it."""
NO_LINKS = (errno.EPERM, errno.ENOTSUP, errno.ENOSYS, errno.EMLINK)
"""What file systems say that cannot give a file a second name."""


def list_files(folder: Path) -> list[Path]:
    """The files of a folder, in order; none where there is no such folder."""
    return _entries(folder, os.DirEntry.is_file)


def list_folders(folder: Path) -> list[Path]:
    """The folders in a folder, in order."""
    return _entries(folder, os.DirEntry.is_dir)


def _entries(folder: Path, kind: Callable[["os.DirEntry[str]"], bool]) -> list[Path]:
    try:
        with os.scandir(folder) as entries:
            found = []
            for entry in entries:
                with suppress(OSError):  # of a link that leads nowhere
                    if kind(entry):
                        found.append(folder / entry.name)
            return sorted(found)
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        raise RunError(f"{folder}: cannot be listed ({error.strerror})") from error


def read(path: Path, at_most: int | None = None) -> bytes:
    """The bytes of a file, or the first of them; FileNotFoundError where there is none."""
    try:
        with path.open("rb") as file:
            return file.read(at_most)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise RunError(f"{path}: cannot be read ({error.strerror})") from error


def size_of(path: Path) -> int | None:
    """A file's bytes; None where there is none."""
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return None


def put_file(path: Path, data: bytes) -> None:
    """Make a file appear whole or not at all, whatever happens to the machine."""
    _put(path, data, os.rename, flush=True)


def put_once(path: Path, data: bytes) -> bool:
    """Make a file appear whole, unless there is one of that name. Returns whether it did."""
    try:
        _put(path, data, _give_new_name, flush=True)
    except FileExistsError:
        return False
    return True


def note_file(path: Path, data: bytes) -> None:
    """Make a file appear whole or not at all, without waiting for the disk.

    For what is worth nothing after the machine has stopped, such as a sign of life.
    """
    _put(path, data, os.rename, flush=False)


def _put(path: Path, data: bytes, name: Callable[[Path, Path], None], *, flush: bool) -> None:
    for _ in range(ATTEMPTS):
        # A name of its own: two processes may write the same file at once.
        temporary = path.with_name(f"{path.name}.{secrets.token_hex(4)}.tmp")
        try:
            _write_new(temporary, data, flush=flush)
            # The name comes last: one without ".tmp" means that the file is whole.
            name(temporary, path)
        except (FileNotFoundError, NotADirectoryError):
            make_folder(path.parent)
        except BaseException:
            with suppress(OSError):
                os.unlink(temporary)
            raise
        else:
            if flush:
                _flush_folder(path.parent)
            return
    raise RunError(f"{path}: cannot be written; something removes its temporary copies")


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
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(descriptor, rest) :]
        if flush:
            os.fsync(descriptor)
    finally:
        os.close(descriptor)


def remove_files(paths: Iterable[Path]) -> None:
    """Remove files, whether or not they are still there, and make that safe on the disk."""
    folders = set()
    for path in list(paths):
        with suppress(FileNotFoundError):
            os.unlink(path)
            folders.add(path.parent)
    for folder in sorted(folders):
        _flush_folder(folder)


def make_folder(folder: Path) -> None:
    """Make a folder and its parents, each safe on the disk."""
    if not folder.is_dir():
        make_folder(folder.parent)
        try:
            os.mkdir(folder)
        except FileExistsError:  # another process was faster
            if not folder.is_dir():
                raise RunError(f"{folder}: a file of that name is in the way") from None
        _flush_folder(folder.parent)


def make_once(folder: Path, owner: bytes) -> bool:
    """Make a folder that says whose it is, unless there is one. Returns whether it did.

    Of all that try, on any machine that sees the storage, one succeeds. Nothing waits for the disk:
    what is made in this way is worth nothing after the machine has stopped.
    """
    for _ in range(ATTEMPTS):
        # There may be no folder above, or it may just have been removed.
        with suppress(FileNotFoundError, NotADirectoryError):
            return _made_and_signed(folder, owner)
        make_folder(folder.parent)
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


def remove_made(folder: Path) -> None:
    """Remove a folder made by `make_once`, whether or not it is still there."""
    with suppress(FileNotFoundError):
        os.unlink(folder / OWNER)
    remove_empty_folder(folder)


def remove_empty_folder(folder: Path) -> None:
    """Remove a folder if it is there and holds nothing."""
    try:
        os.rmdir(folder)
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
