"""The weights of a checkpoint: what the files say they hold, the tensors, and their hash.

What a file holds is read from its header and compared with the model before any tensor is, so a
checkpoint of many gigabytes that does not fit its configuration is refused at once.
"""

import hashlib
import json
import logging
import os
import re
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from c4.errors import ModelError

log = logging.getLogger(__name__)

FLOATS = {"F64", "F32", "F16", "BF16"}


@dataclass(frozen=True)
class Stored:
    """A tensor as the header of its file describes it."""

    file: Path
    shape: tuple[int, ...]
    dtype: str


def stored_tensors(files: Sequence[Path]) -> dict[str, Stored]:
    """Every tensor of the files by its name; no name may occur twice."""
    found: dict[str, Stored] = {}
    for path in files:
        with _opened(path) as file:
            for name in file.keys():  # noqa: SIM118 - not a mapping
                if name in found:
                    raise ModelError(f"{path}: tensor {name} is also in {found[name].file.name}")
                part = file.get_slice(name)
                found[name] = Stored(path, tuple(part.get_shape()), part.get_dtype())
    return found


def read_tensors(files: Sequence[Path]) -> Iterator[tuple[str, Any]]:
    """Every tensor of the files, one at a time."""
    for path in files:
        with _opened(path) as file:
            for name in file.keys():  # noqa: SIM118 - not a mapping
                yield name, file.get_tensor(name)


@contextmanager
def _opened(path: Path) -> Iterator[Any]:
    """A safetensors file; whatever is wrong with it becomes an error that names it."""
    from safetensors import SafetensorError, safe_open

    opened: Any = safe_open
    try:
        with opened(path, framework="pt") as file:
            yield file
    except (SafetensorError, OSError, ValueError) as error:
        raise ModelError(f"{path}: damaged safetensors file ({error})") from error


def check_tensors(stored: Mapping[str, Stored], wanted: Mapping[str, tuple[int, ...]]) -> None:
    """Refuse a tensor whose shape is not the model's, or whose type is not a known number."""
    for name, tensor in stored.items():
        if name not in wanted:
            continue
        if tensor.shape != wanted[name]:
            raise ModelError(
                f"{tensor.file.name}: the checkpoint has a wrong shape for tensor {name}: "
                f"{list(tensor.shape)}, where config.json asks for {list(wanted[name])}"
            )
        if tensor.dtype not in FLOATS:
            raise ModelError(
                f"{tensor.file.name}: tensor {name} is stored as {tensor.dtype}; known are "
                f"{', '.join(sorted(FLOATS))}, and quantized weights are not read"
            )


def weights_hash(files: Sequence[Path]) -> str:
    """SHA-256 over the weight files' own SHA-256s."""
    return hashlib.sha256("".join(map(_file_hash, files)).encode()).hexdigest()


def _file_hash(path: Path) -> str:
    blob = path.resolve().name
    if path.is_symlink() and SHA256.fullmatch(blob):
        return blob  # the hub cache names a large file by its SHA-256; 16 GB need not be read
    if path.stat().st_size < REMEMBERED_SIZE:
        return _read_hash(path)
    return _remembered(path) or _read_and_remember(path)


SHA256 = re.compile(r"[0-9a-f]{64}")
REMEMBERED_SIZE = 64 * 2**20
"""Bytes from which on a file's hash is remembered; smaller files are read in a moment."""
AT_REST = 5.0
"""Seconds after its last change from which on a file's hash is remembered. A file system may
count time so coarsely that a second change right after the first leaves no trace."""
PATIENCE = 2.0
"""Seconds of hashing after which a waiting user is told."""
CHUNK = 2**24


def _read_hash(path: Path) -> str:
    """SHA-256 of a file's bytes; a user who has to wait is told."""
    digest, start, told = hashlib.sha256(), time.monotonic(), False
    with path.open("rb") as file:
        while chunk := file.read(CHUNK):
            digest.update(chunk)
            if not told and time.monotonic() - start > PATIENCE:
                gigabytes = path.stat().st_size / 1e9
                log.warning("hashing %s (%.1f GB); this may take a while", path.name, gigabytes)
                told = True
    return digest.hexdigest()


def _read_and_remember(path: Path) -> str:
    before = _state(path)
    started = time.time_ns()
    digest = _read_hash(path)
    changed = max(before["mtime_ns"], before["ctime_ns"])
    if _state(path) == before and started - changed >= AT_REST * 1e9:
        _remember(path, {**before, "sha256": digest})
    return digest


def _state(path: Path) -> dict[str, Any]:
    """Size, times and other attributes that change when a file does."""
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
    """Write the hash to the cache; failing to do so is not an error."""
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
