"""Hash of a checkpoint's weights, cached across commands."""

import hashlib
import json
import logging
import os
import re
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from c4.models._load_progress import Progress

log = logging.getLogger(__name__)


def weights_hash(files: Sequence[Path]) -> str:
    """SHA-256 over the weight files' own SHA-256s."""
    return hashlib.sha256("".join(map(_file_hash, files)).encode()).hexdigest()


SHA256 = re.compile(r"[0-9a-f]{64}")
REMEMBERED_SIZE = 64 * 2**20
"""Minimum size in bytes of files whose hash is cached; smaller ones are hashed quickly."""
AT_REST = 5.0
"""Seconds that a file must have been unchanged before its hash is cached. Timestamps of a file
system may be too coarse to reveal a second change right after the first."""
CHUNK = 2**24


def _file_hash(path: Path) -> str:
    blob = path.resolve().name
    if path.is_symlink() and SHA256.fullmatch(blob):
        return blob  # the hub cache names large files by their SHA-256, so 16 GB need not be read
    if path.stat().st_size < REMEMBERED_SIZE:
        return _read_hash(path)
    note, began = _note(path), time.time()
    with suppress(OSError, ValueError):
        remembered = note.read_text(encoding="ascii")
        if SHA256.fullmatch(remembered):
            return remembered
    digest = _read_hash(path)
    facts = path.stat()
    is_at_rest = began - max(facts.st_mtime, facts.st_ctime) >= AT_REST
    if is_at_rest and note == _note(path):
        with suppress(OSError):  # an unwritable cache only costs time
            note.parent.mkdir(parents=True, exist_ok=True)
            with tempfile.NamedTemporaryFile("w", dir=note.parent, delete=False) as file:
                file.write(digest)
            Path(file.name).replace(note)
    return digest


def _read_hash(path: Path) -> str:
    """Compute the SHA-256 of a file's bytes, with progress messages if it takes long."""
    digest = hashlib.sha256()
    progress = Progress(log, f"hashing {path.name}", path.stat().st_size)
    with path.open("rb") as file:
        while chunk := file.read(CHUNK):
            digest.update(chunk)
            progress.advance(len(chunk))
    return digest.hexdigest()


def _note(path: Path) -> Path:
    """Path in the user's cache that stores a weight file's hash.

    The name depends on everything that changes when the weight file changes.
    """
    base = os.environ.get("XDG_CACHE_HOME", "")
    cache = Path(base) if Path(base).is_absolute() else Path("~/.cache").expanduser()
    real = path.resolve()
    facts = real.stat()
    names = ("st_size", "st_mtime_ns", "st_ctime_ns", "st_ino", "st_dev")
    state = json.dumps([os.fsdecode(real), *(getattr(facts, name) for name in names)])
    return cache / "c4" / "weights" / f"{hashlib.sha256(state.encode()).hexdigest()}.txt"
