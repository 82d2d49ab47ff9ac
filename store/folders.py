"""Folders as storage, on a local disk or a shared file system.

Files are written atomically: under a temporary name, flushed to the disk and renamed. A claim that
only one process may win is a folder, because `mkdir` succeeds for one process alone, even on
network file systems.
"""

import errno
import os
import secrets
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path

from c4.errors import RunError

ATTEMPTS = 5
"""Maximum attempts to write a file whose temporary copy another process removes as a leftover."""
OWNER = "owner"
"""Name of the file that holds the owner of a folder made by `make_once`."""
NO_LINKS = (errno.EPERM, errno.ENOTSUP, errno.ENOSYS, errno.EMLINK)
"""Error numbers of file systems that do not support hard links."""


def list_files(folder: Path) -> list[Path]:
    """List the files of a folder, in order; empty if there is no such folder."""
    return _entries(folder, os.DirEntry.is_file)


def list_folders(folder: Path) -> list[Path]:
    """List the folders in a folder, in order."""
    return _entries(folder, os.DirEntry.is_dir)


def _entries(folder: Path, kind: Callable[["os.DirEntry[str]"], bool]) -> list[Path]:
    try:
        with os.scandir(folder) as entries:
            found = []
            for entry in entries:
                with suppress(OSError):  # a broken link
                    if kind(entry):
                        found.append(folder / entry.name)
            return sorted(found)
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        raise RunError(f"{folder}: cannot be listed ({error.strerror})") from error


def read(path: Path, at_most: int | None = None) -> bytes:
    """Return a file's bytes, or the first `at_most`; raise FileNotFoundError if it is missing."""
    try:
        with path.open("rb") as file:
            return file.read(at_most)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise RunError(f"{path}: cannot be read ({error.strerror})") from error


def size_of(path: Path) -> int | None:
    """Return a file's size in bytes; None if it does not exist."""
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return None


def put_file(path: Path, data: bytes) -> None:
    """Write a file atomically, so that it is whole or absent even if the machine crashes."""
    _put(path, data, os.rename, flush=True)


def put_once(path: Path, data: bytes) -> bool:
    """Write a file atomically unless one of that name exists. Returns whether it was written."""
    try:
        _put(path, data, _give_new_name, flush=True)
    except FileExistsError:
        return False
    return True


def note_file(path: Path, data: bytes) -> None:
    """Write a file atomically, without waiting for the disk.

    For data that has no value after the machine has stopped, such as a sign of life.
    """
    _put(path, data, os.rename, flush=False)


def _put(path: Path, data: bytes, name: Callable[[Path, Path], None], *, flush: bool) -> None:
    for _ in range(ATTEMPTS):
        # A unique name, because two processes may write the same file at once.
        temporary = path.with_name(f"{path.name}.{secrets.token_hex(4)}.tmp")
        try:
            _write_new(temporary, data, flush=flush)
            # Rename last, so that a file without ".tmp" in its name is always whole.
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
    """Rename a file; raise FileExistsError if the new name is taken."""
    try:
        os.link(temporary, path)
    except OSError as error:
        if error.errno not in NO_LINKS:
            raise
        # Without links, two processes may both find no file here. Either both write the same
        # content, or the loser finds out from what it reads afterwards.
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
    """Remove files, ignoring missing ones, and flush the removal to the disk."""
    folders = set()
    for path in list(paths):
        with suppress(FileNotFoundError):
            os.unlink(path)
            folders.add(path.parent)
    for folder in sorted(folders):
        _flush_folder(folder)


def make_folder(folder: Path) -> None:
    """Make a folder and its parents, and flush each to the disk."""
    if not folder.is_dir():
        make_folder(folder.parent)
        try:
            os.mkdir(folder)
        except FileExistsError:  # another process was faster
            if not folder.is_dir():
                raise RunError(f"{folder}: a file of that name is in the way") from None
        _flush_folder(folder.parent)


def make_once(folder: Path, owner: bytes) -> bool:
    """Make a folder signed by its owner, unless it exists. Returns whether it was made.

    Of all processes that try, on any machine that sees the storage, one succeeds. This does not
    wait for the disk, because such a folder has no value after the machine has stopped.
    """
    for _ in range(ATTEMPTS):
        # The parent folder may not exist yet, or may just have been removed.
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
    except FileNotFoundError:  # removed by another process before it was signed
        return False
    return True


def remove_made(folder: Path) -> None:
    """Remove a folder made by `make_once`, if it is still there."""
    with suppress(FileNotFoundError):
        os.unlink(folder / OWNER)
    remove_empty_folder(folder)


def remove_empty_folder(folder: Path) -> None:
    """Remove a folder if it exists and is empty."""
    try:
        os.rmdir(folder)
    except (FileNotFoundError, NotADirectoryError):
        pass
    except OSError as error:
        if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
            raise


def _flush_folder(folder: Path) -> None:
    """Flush the directory entries of a folder to the disk."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
