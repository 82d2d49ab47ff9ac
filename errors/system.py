"""What the operating system refuses, in words that say what to do."""

import errno
import os
from pathlib import Path

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


def reason(error: OSError | ValueError) -> str:
    """Why the system refused, without its numbers."""
    if isinstance(error, OSError) and error.errno is not None:
        return ADVICE.get(error.errno) or os.strerror(error.errno).lower()
    return str(error)


def explain(error: OSError) -> str:
    """An error of the system as a message: what it is about, and why it was refused."""
    names = [os.fsdecode(name) for name in (error.filename, error.filename2) if _is_path(name)]
    return ": ".join([*names[:1], reason(error)])


def _is_path(name: object) -> bool:
    return isinstance(name, str | bytes) and bool(name)


def user_path(text: str) -> Path:
    """A path as a user writes it, with `~` for a home folder where there is such a user."""
    try:
        return Path(text).expanduser()
    except RuntimeError:
        return Path(text)


def exists(path: Path) -> bool:
    """Whether there is a file or a folder; a name that none can have is not there."""
    try:
        return path.exists()
    except (OSError, ValueError):
        return False
