"""A run's folder, its manifest, and the tokenizer beside it.

runs/model=tiny/task=math/method=baseline/
    manifest.json                        every parameter; see `Manifest`
    tokenizer.json                       what token ids mean
    rows/000000-000027.5e1d00c2.parquet  one row per trajectory
    cells/000000-000027.1f0c93aa.parquet one row per step and position, where they are kept
    pending/000028-000028.….parquet      finished, not yet sealed into a part
    grades/000000-000027.….parquet       given later, if any
    signals/…                            a cache that may be deleted
runs/bench/model=tiny/task=math/20260101T120000Z.5e1d00c2.parquet
"""

import hashlib
import json
import zlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from c4.errors import RunError
from c4.store.storage import put_file, read_file

SCHEMA_VERSION = 3


@dataclass(frozen=True, kw_only=True)
class Manifest:
    """Everything that made a run, in two halves."""

    identity: Mapping[str, Any]
    """What decides the numbers. Two recordings mix only if these are equal."""
    environment: Mapping[str, Any]
    """Where it was made: versions, machine, time. Informative."""
    tokenizer_file_sha256: str
    """Of tokenizer.json beside the manifest."""
    schema_version: int = SCHEMA_VERSION

    @property
    def digest(self) -> str:
        """A short name of the identity, which every part of the run carries."""
        return identity_digest(self.identity)


def identity_digest(identity: Mapping[str, Any]) -> str:
    """A short name of an identity; equal for equal identities alone."""
    return hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()[:16]


def run_folder(root: Path, model: str, task: str, label: str) -> Path:
    """Where a run lives: hive-partitioned by model, task and method.

    The label is quoted as in an address, which readers of partitions undo: a second equals sign
    would make them overlook the first.
    """
    return task_folder(root, model, task) / f"method={quote(label, safe=' +,')}"


def task_folder(root: Path, model: str, task: str) -> Path:
    """Where everything of a model and a task lives."""
    return root / f"model={model}" / f"task={task}"


def write_manifest(folder: Path, manifest: Manifest) -> None:
    content = asdict(manifest)
    content["checksum"] = _content_checksum(content)
    text = json.dumps(content, indent=2, sort_keys=True, ensure_ascii=False)
    put_file(folder / "manifest.json", text.encode() + b"\n")


def _content_checksum(content: Mapping[str, Any]) -> str:
    """CRC-32 of a manifest's content, however it is laid out."""
    return f"{zlib.crc32(json.dumps(content, sort_keys=True).encode()):08x}"


def read_manifest(folder: Path) -> Manifest:
    path = folder / "manifest.json"
    try:
        raw = json.loads(read_file(path))
        check_version(path, raw["schema_version"])
        checksum = raw.pop("checksum")
        if checksum != _content_checksum(raw):
            raise ValueError("its content does not match its checksum")
        return Manifest(**raw)
    except FileNotFoundError:
        raise RunError(f"{folder}: no manifest.json, so not a recording") from None
    except (ValueError, KeyError, TypeError) as error:
        raise RunError(f"{path}: damaged manifest ({error})") from error


def check_version(path: Path, version: object) -> None:
    """Refuse a format that this version does not read."""
    if type(version) is not int or version < 1:
        raise ValueError(f"{version!r} is no format")
    if version != SCHEMA_VERSION:
        whose, advice = "an earlier", "record it again, or read it with that version"
        if version > SCHEMA_VERSION:
            whose, advice = "a newer", "upgrade c4"
        raise RunError(
            f"{path}: written by {whose} c4 (format {version}, this one reads {SCHEMA_VERSION}); "
            f"{advice}"
        )


def write_tokenizer(folder: Path, tokenizer_json: str) -> None:
    put_file(folder / "tokenizer.json", tokenizer_json.encode())


def read_tokenizer(folder: Path, manifest: Manifest) -> str:
    """The run's tokenizer, checked against the manifest."""
    path = folder / "tokenizer.json"
    try:
        data = read_file(path)
    except FileNotFoundError:
        raise RunError(f"{path}: missing, so token ids have no meaning") from None
    if text_hash(data.decode("utf-8", "replace")) != manifest.tokenizer_file_sha256:
        raise RunError(f"{path}: damaged (not the file that the manifest was written for)")
    return data.decode()


def text_hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
