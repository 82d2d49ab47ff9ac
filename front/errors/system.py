"""Operating system errors, as messages that say what to do."""

import errno
import os
import stat
from pathlib import Path
from tempfile import TemporaryFile

from c4.errors import ConfigError

ADVICE = {
    errno.ENOENT: "there is no such file or folder; check the name",
    errno.EEXIST: "a file of that name is in the way; choose another place, or move it away",
    errno.ENOTDIR: "a part of that path is a file where a folder should be; choose another place",
    errno.EISDIR: "this is a folder, where a file is needed; name a file",
    errno.EACCES: "permission denied; change its permissions, or choose another place",
    errno.EPERM: "this is not permitted; change its owner or attributes, or choose another place",
    errno.EROFS: "this file system is read-only; choose another place",
    errno.ENOSPC: "the disk is full; make room, and give the same command again",
    errno.EDQUOT: "your quota on this disk is used up; make room, and give the same command again",
    errno.ENAMETOOLONG: "the name is too long for this file system; choose a shorter one",
    errno.ELOOP: "links lead in a circle; remove the link, or choose another place",
    errno.EMFILE: "too many files are open; raise the limit with: ulimit -n 4096",
    errno.ENFILE: "too many files are open on this machine; close some programs and try again",
    errno.EIO: "the disk reports an error; check it, and choose another place meanwhile",
    errno.ENOMEM: "memory ran out; close some programs, or ask for less",
    errno.EAGAIN: "the machine has no process or lock left to give; try again",
    errno.EINVAL: "the system takes no such name or value; choose another",
}


def reason(error: Exception) -> str:
    """Return the reason for an error, without the system's error number."""
    if isinstance(error, OSError) and error.errno is not None:
        return ADVICE.get(error.errno) or os.strerror(error.errno).lower()
    return str(error)


def explain(error: OSError) -> str:
    """Format a system error as a message: its path and the reason."""
    names = (error.filename, error.filename2)
    paths = [os.fsdecode(name) for name in names if isinstance(name, str | bytes) and name]
    return ": ".join([*paths[:1], reason(error)])


def user_path(text: str) -> Path:
    """Convert a path that a user typed, expanding `~` if that user exists."""
    try:
        return Path(text).expanduser()
    except RuntimeError:
        return Path(text)


def exists(path: Path) -> bool:
    """Whether a file or folder exists; False for an invalid name."""
    try:
        return path.exists()
    except (OSError, ValueError):
        return False


def require_plain_file(path: Path, most: int | None = None) -> None:
    """Raise `ValueError` if a path is not a regular file or is too large.

    Reading a pipe or a device might never end.

    Args:
        most: maximum size in bytes.
    """
    facts = path.stat()
    if not stat.S_ISREG(facts.st_mode):
        raise ValueError("this is not a file")
    if most is not None and facts.st_size > most:
        raise ValueError(f"{facts.st_size:,} bytes are too many")


def require_writable_folder(folder: Path) -> None:
    """Check that results can be stored in a folder before computing them. Leaves no trace."""
    _try_to_write(folder, _nearest(folder))


def require_writable_file(path: Path) -> None:
    """Check that a file can be written before computing its content. Leaves no trace."""
    nearest = _nearest(path)
    if nearest == path.absolute():
        if path.is_dir():
            raise ConfigError(f"{path}: this is a folder; name a file in it")
        if not path.is_file():  # renaming a file over a device would delete the device
            raise ConfigError(f"{path}: this is neither a file nor a folder; name a file")
        nearest = nearest.parent
    _try_to_write(path, nearest)


def _try_to_write(path: Path, nearest: Path) -> None:
    if not nearest.is_dir():
        raise ConfigError(f"{path}: {nearest} is not a folder; choose another place")
    try:
        with TemporaryFile(dir=nearest):
            pass
    except OSError as error:
        raise ConfigError(f"{path}: cannot be written ({reason(error)})") from error


LONGEST_SUFFIX = len(".01234567.tmp")
"""Bytes added to the name of a file while it is being written."""


def _nearest(path: Path) -> Path:
    """Return the path itself if it exists, otherwise its nearest existing parent."""
    try:
        whole = path.absolute()
        place = next(place for place in (whole, *whole.parents) if _is_there(place))
        for name in whole.parts[len(place.parts) :]:
            if len(os.fsencode(name)) + LONGEST_SUFFIX > os.pathconf(place, "PC_NAME_MAX"):
                raise OSError(errno.ENAMETOOLONG, "")
        if not place.exists():
            raise ConfigError(
                f"{path}: {place} is a link to something that is not there; remove it, or choose "
                "another place"
            )
        return place
    except (OSError, ValueError) as error:
        raise ConfigError(f"{path}: cannot be written ({reason(error)})") from error


def _is_there(place: Path) -> bool:
    """Whether a name exists, even as a broken link."""
    try:
        place.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    return True


def process_mark() -> str:
    """Identifier of this process, with which others on this machine can tell whether it runs.

    It consists of boot id, container, process id and start time, so that no later process can be
    mistaken for it. Empty if the system does not provide these.
    """
    return _mark_of(os.getpid()) or ""


def is_running(mark: str) -> bool | None:
    """Whether the process of a mark still runs; None if this process cannot tell."""
    here = process_mark().rpartition(":")[0].rpartition(":")[0]
    place, _, number = mark.rpartition(":")[0].rpartition(":")
    if not here or place != here or not number.isdecimal():
        return None
    return _mark_of(int(number)) == mark


def _mark_of(number: int) -> str | None:
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        container = os.readlink("/proc/self/ns/pid")
        # After the name, which is in parentheses and may contain anything, the first field is the
        # state and the 20th the start time.
        facts = Path(f"/proc/{number}/stat").read_text(encoding="utf-8", errors="replace")
        state, *fields = facts.rpartition(")")[2].split()
        return None if state in "ZX" else f"{boot}:{container}:{number}:{fields[18]}"
    except (OSError, IndexError, ValueError):
        return None
