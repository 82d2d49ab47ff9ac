"""The one way to the disk: list, read, and put whole.

Everything that c4 keeps goes through these functions. A file appears whole or not at all: it is
written under a temporary name, flushed to the disk and renamed.
"""

import os
from collections.abc import Iterable
from pathlib import Path

TEMPORARY = ".tmp"


def list_files(folder: Path) -> list[Path]:
    """The whole files of a folder, in order; none where there is no such folder."""
    if not folder.is_dir():
        return []
    return sorted(path for path in folder.iterdir() if path.suffix != TEMPORARY)


def read_file(path: Path) -> bytes:
    """The bytes of a file."""
    return path.read_bytes()


def put_file(path: Path, data: bytes) -> None:
    """Make a file appear whole or not at all, whatever happens to the machine."""
    make_folder(path.parent)
    temporary = path.with_name(path.name + TEMPORARY)
    try:
        with temporary.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        # Rename last: a name without ".tmp" means the file is whole.
        temporary.rename(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    flush_folder(path.parent)


def remove_files(paths: Iterable[Path]) -> None:
    """Remove files, whether or not they are still there."""
    for path in list(paths):
        path.unlink(missing_ok=True)


def make_folder(folder: Path) -> None:
    """Make a folder and its parents, each safe on the disk."""
    if not folder.is_dir():
        make_folder(folder.parent)
        folder.mkdir(exist_ok=True)
        flush_folder(folder.parent)


def flush_folder(folder: Path) -> None:
    """Make the names in a folder safe on the disk."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
