"""The hash of a checkpoint's weights, remembered from one command to the next.

Of several processes on a machine that need the hash of the same file, one reads it and the others
wait for what it writes down.
"""

import hashlib
import json
import logging
import os
import re
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from c4.models._waiting import PATIENCE, Patience

log = logging.getLogger(__name__)


def weights_hash(files: Sequence[Path]) -> str:
    """SHA-256 over the weight files' own SHA-256s."""
    return hashlib.sha256("".join(map(_file_hash, files)).encode()).hexdigest()


SHA256 = re.compile(r"[0-9a-f]{64}")
REMEMBERED_SIZE = 64 * 2**20
"""Bytes from which on a file's hash is remembered; smaller files are read in a moment."""
AT_REST = 5.0
"""Seconds after its last change from which on a file's hash is remembered. A file system may
count time so coarsely that a second change right after the first leaves no trace."""
TURN = 600.0
"""Seconds after which a process stops waiting for another one's hash and computes its own."""
CHUNK = 2**24


def _file_hash(path: Path) -> str:
    blob = path.resolve().name
    if path.is_symlink() and SHA256.fullmatch(blob):
        return blob  # the hub cache names a large file by its SHA-256; 16 GB need not be read
    if path.stat().st_size < REMEMBERED_SIZE or not _settled(_state(path)):
        return _read_hash(path)
    if known := _remembered(path):
        return known
    with _turn(path):
        return _remembered(path) or _read_and_remember(path)


def _read_hash(path: Path) -> str:
    """SHA-256 of a file's bytes, with a word to a user who has to wait for it."""
    digest = hashlib.sha256()
    patience = Patience(log, f"hashing {path.name}", path.stat().st_size)
    with path.open("rb") as file:
        while chunk := file.read(CHUNK):
            digest.update(chunk)
            patience.advance(len(chunk))
    return digest.hexdigest()


def _read_and_remember(path: Path) -> str:
    before = _state(path)
    settled = _settled(before)
    digest = _read_hash(path)
    if settled and _state(path) == before:
        _remember(path, {**before, "sha256": digest})
    return digest


def _settled(state: Mapping[str, Any]) -> bool:
    """Whether another change of the file from now on would show."""
    return time.time_ns() - max(state["mtime_ns"], state["ctime_ns"]) >= AT_REST * 1e9


@contextmanager
def _turn(path: Path) -> Iterator[None]:
    """Keep other processes from hashing the same file; where no lock can be had, go on without."""
    with ExitStack() as stack:
        with suppress(OSError, NotImplementedError):  # `Timeout` is an OSError
            _note(path).parent.mkdir(parents=True, exist_ok=True)
            stack.enter_context(_patient_lock(path))
        yield


@contextmanager
def _patient_lock(path: Path) -> Iterator[None]:
    lock = FileLock(_note(path).with_suffix(".lock"))
    try:
        lock.acquire(timeout=PATIENCE)
    except Timeout:
        log.warning("another process is hashing %s; waiting for it", path.name)
        lock.acquire(timeout=TURN)
    try:
        yield
    finally:
        lock.release()


def _state(path: Path) -> dict[str, Any]:
    """What changes when a file does."""
    real = path.resolve()
    facts = real.stat()
    names = ("size", "mtime_ns", "ctime_ns", "ino", "dev")
    return {"path": os.fsdecode(real), **{n: getattr(facts, f"st_{n}") for n in names}}


def _remembered(path: Path) -> str | None:
    """The hash of a file that has not changed since it was last read, if there is one."""
    try:
        note = json.loads(_note(path).read_text(encoding="utf-8"))
        digest = note.pop("sha256")
    except (OSError, ValueError, RecursionError, LookupError, TypeError, AttributeError):
        return None
    known = note == _state(path) and isinstance(digest, str) and SHA256.fullmatch(digest)
    return digest if known else None


def _remember(path: Path, note: Mapping[str, Any]) -> None:
    """Write the hash down; a cache that cannot be written costs time and is no error."""
    target = _note(path)
    with suppress(OSError):
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile("w", dir=target.parent, delete=False) as file:
            json.dump(note, file)
        Path(file.name).replace(target)


def _note(path: Path) -> Path:
    """The file that remembers a weight file's hash, in the user's cache."""
    base = os.environ.get("XDG_CACHE_HOME", "")
    cache = Path(base) if Path(base).is_absolute() else Path("~/.cache").expanduser()
    name = hashlib.sha256(os.fsencode(path.resolve())).hexdigest()
    return cache / "c4" / "weights" / f"{name}.json"
