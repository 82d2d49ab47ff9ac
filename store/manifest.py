"""A run's folder, its manifest, and the tokenizer beside it.

runs/model=tiny/task=math/method=baseline/
    manifest.json                        every parameter; see `Manifest`
    tokenizer.json                       decodes token ids
    rows/000000-000027.5e1d00c2.parquet  one row per trajectory
    cells/000000-000027.1f0c93aa.parquet one row per step and position, if kept
    pending/000028-000028.….parquet      finished, not yet sealed into a part
    grades/000000-000027.….parquet       grades added later, if any
    signals/…                            a cache that may be deleted
    claims/, workers/, aside/            current workers; see `store/claims.py`
runs/bench/model=tiny/task=math/20260101T120000000000Z.5e1d00c2.parquet
"""

import hashlib
import json
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Any
from urllib.parse import quote

from c4.errors import ConfigError, RunError
from c4.errors.text import differences
from c4.store.locations import Location
from c4.store.storage import file_exists, list_files, put_file, put_once, read_file
from c4.tasks import AnswerReading, Shape

SCHEMA_VERSION = 3
MANIFEST = "manifest.json"
TOKENIZER = "tokenizer.json"
BENCH_FOLDER = "bench"
"""Folder of the timings, below the folder of all runs."""
RECORDED = ("rows", "cells", "pending", "grades")
"""Folders of the parts that hold recorded data."""
DATA_FOLDERS = (*RECORDED, "signals")
"""Folders of all parts of a run; signals are a cache."""
MADE_WITH = ("gpu", "machine", "python", "libraries")
"""Keys of the environment that every part keeps. They are equal in all sessions of one machine, so
that an interrupted run has the same bytes as an uninterrupted one.
"""
ASKED = "asked"
"""Key of the environment for options that the user typed."""
ROWS_ASKED = "data_files"
"""Key in `asked` for the path to the rows of a YAML task, which its identity leaves out."""
IDENTITY: Mapping[str, type | tuple[type, ...]] = {
    "task": str,
    "origin": str,
    "source": str,
    "model": str,
    "revision": (str, type(None)),
    "device": str,
    "dtype": str,
    "batch": int,
    "shape": dict,
    "seed": int,
    "order": str,
    "resolution": dict,
    "cells": bool,
    "method": str,
    "label": str,
    "rule": dict,
    "gate": (dict, type(None)),
    "forward": dict,
    "weights_sha256": str,
    "tokenizer_sha256": str,
    "chat_template": bool,
    "vocab_size": int,
    "mask_id": int,
    "end_ids": list,
    "shift": bool,
}
"""Keys that every identity holds, with the types of their values."""
OPTIONAL = frozenset({"task_definition"})
"""Keys that an identity holds only if the task is a user's own or its wording was replaced."""


class OtherFormatError(RunError):
    """Error for a run in a format that this version does not read."""


@dataclass(frozen=True, kw_only=True)
class Manifest:
    """All parameters of a run, split into identity and environment."""

    identity: Mapping[str, Any]
    """Settings that determine the results. Recordings can be combined only if these are equal."""
    environment: Mapping[str, Any]
    """Versions, machine and time of the recording. Informative."""
    tokenizer_file_sha256: str
    """SHA-256 of the tokenizer.json beside the manifest."""
    schema_version: int = SCHEMA_VERSION

    @cached_property
    def digest(self) -> str:
        """A short hash of the identity, stored in every part of the run."""
        return identity_digest(self.identity)

    @property
    def made_with(self) -> dict[str, Any]:
        """The machine, GPU and library versions, in the form that parts store."""
        return {name: self.environment[name] for name in MADE_WITH if name in self.environment}

    @property
    def asked(self) -> dict[str, str]:
        """Options, as typed, that name the user's own files and code."""
        found = self.environment.get(ASKED)
        return {k: v for k, v in found.items() if isinstance(v, str)} if found else {}

    def without_asked(self) -> "Manifest":
        """Return the manifest without the user's own paths, for publication."""
        kept = {name: value for name, value in self.environment.items() if name != ASKED}
        return replace(self, environment=kept)

    @cached_property
    def shape(self) -> Shape:
        return Shape(**self.identity["shape"])


def identity_digest(identity: Mapping[str, Any]) -> str:
    """Return a short hash of an identity."""
    return hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()[:16]


def is_baseline(identity: Mapping[str, Any]) -> bool:
    """Whether an identity is that of the full decode: schedule rule, no cache and no gate."""
    whole = identity["forward"]["cache"] == "off"
    return identity["rule"] == {"name": "schedule"} and identity["gate"] is None and whole


OF_THE_METHOD = ("method", "label", "rule", "gate", "forward", "cells")
"""Keys of the identity that may differ between runs that are compared example by example."""


def conditions(identity: Mapping[str, Any]) -> dict[str, Any]:
    """Return the part of an identity that must be equal in runs that are compared."""
    return {k: v for k, v in identity.items() if k not in OF_THE_METHOD}


def run_folder(root: Location, model: str, task: str, label: str) -> Location:
    """Return the folder of a run: hive-partitioned by model, task and method.

    Names are percent-encoded, and readers of partitions decode them: a second equals sign would
    hide the first from them, and a slash would start another folder.
    """
    return task_folder(root, model, task) / _partition("method", label)


def task_folder(root: Location, model: str, task: str) -> Location:
    """Return the folder for a model and a task."""
    return root / _partition("model", model) / _partition("task", task)


def _partition(key: str, value: str) -> str:
    """Return the folder name of a partition; the value is encoded, as manifests are untrusted."""
    return f"{key}={quote(value, safe=' +,')}"


def write_manifest(folder: Location, manifest: Manifest) -> None:
    """Write a manifest, replacing any that exists."""
    put_file(folder / MANIFEST, manifest_file(manifest))


def create_manifest(folder: Location, manifest: Manifest) -> bool:
    """Write a manifest unless one exists. Returns whether it was written."""
    return put_once(folder / MANIFEST, manifest_file(manifest))


def manifest_file(manifest: Manifest) -> bytes:
    """Return the content of manifest.json, checksum included."""
    content = asdict(manifest)
    content["checksum"] = content_checksum(content)
    return json.dumps(content, indent=2, sort_keys=True, allow_nan=False).encode() + b"\n"


def content_checksum(content: Mapping[str, Any]) -> str:
    """Return the CRC-32 of the content of a JSON file, independent of its layout."""
    return f"{zlib.crc32(json.dumps(content, sort_keys=True).encode()):08x}"


def read_manifest(folder: Location) -> Manifest:
    path = folder / MANIFEST
    try:
        raw = json.loads(read_file(path))
        if not isinstance(raw, dict) or "schema_version" not in raw:
            raise ValueError("not a JSON object with a schema_version")
        # Check for damage first, so that a damaged version number is not taken for another format.
        checksum = raw.pop("checksum", None)
        if checksum is not None and checksum != content_checksum(raw):
            raise ValueError("its content does not match its checksum")
        check_version(path, raw["schema_version"])
        if checksum is None:
            raise ValueError("it has no checksum")
        manifest = Manifest(**raw)
        validate_identity(manifest.identity)
        return manifest
    except FileNotFoundError:
        if not has_parts(folder):
            raise RunError(f"{folder}: no manifest.json, so not a recording") from None
        raise RunError(
            f"{folder}: parts of a run, but no manifest.json that says what they are; rebuild it "
            f"with: c4 runs --repair '{folder}'"
        ) from None
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        raise RunError(
            f"{path}: damaged manifest ({error}); rebuild it from the run's parts with: "
            f"c4 runs --repair '{folder}'"
        ) from error


def has_parts(folder: Location) -> bool:
    """Whether a folder holds decodes, with a manifest or without."""
    return any(
        path.suffix == ".parquet"
        for name in ("rows", "pending")
        for path in list_files(folder / name)
    )


def is_run(folder: Location) -> bool:
    """Whether a folder holds a run, even one that has lost its manifest."""
    return file_exists(folder / MANIFEST) or has_parts(folder)


def validate_identity(identity: Mapping[str, Any]) -> None:
    """Refuse an identity with missing keys or invalid values."""
    for name, kind in IDENTITY.items():
        value = identity[name]
        if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
            raise ValueError(f"its {name} cannot be {value!r}")
    if {type(number) for number in (*identity["shape"].values(), *identity["end_ids"])} - {int}:
        raise ValueError("its shape and its end tokens are not whole numbers")
    try:
        Shape(**identity["shape"])
    except ConfigError as error:
        raise ValueError(str(error)) from error
    str(identity["forward"]["cache"])
    if not isinstance(identity.get("task_definition", {}), dict):
        raise ValueError("its task_definition is no mapping")
    reading = (identity["gate"] or {}).get("reading")
    if reading is not None:
        AnswerReading.parse(**reading)


def name_differences(
    there: Mapping[str, Any], here: Mapping[str, Any], keys: Iterable[str]
) -> list[str]:
    """Describe the differences of two identities, one line each, with their place in the value."""
    lines = [
        f"  {key}: {line}" for key in keys for line in differences(there.get(key), here.get(key))
    ]
    edited = " (its source was edited)"
    return [f"{line}{edited if 'source_sha256' in line else ''}" for line in lines]


def check_version(path: Location, version: object) -> None:
    """Refuse a format that this version does not read."""
    if type(version) is not int or version < 1:
        raise ValueError(f"{version!r} is no format")
    if version != SCHEMA_VERSION:
        whose, advice = "an earlier", "record it again, or read it with that version"
        if version > SCHEMA_VERSION:
            whose, advice = "a newer", "upgrade c4"
        raise OtherFormatError(
            f"{path}: written by {whose} c4 (format {version}, this one reads {SCHEMA_VERSION}); "
            f"{advice}"
        )


def write_tokenizer(folder: Location, tokenizer_json: str) -> None:
    put_file(folder / TOKENIZER, tokenizer_json.encode())


def read_tokenizer(folder: Location, manifest: Manifest) -> str:
    """Read the run's tokenizer.json and check it against the manifest."""
    path = folder / TOKENIZER
    try:
        data = read_file(path)
    except FileNotFoundError:
        raise RunError(
            f"{path}: missing, so token ids have no meaning; give the command that recorded the "
            "run again, and it is written anew"
        ) from None
    if hashlib.sha256(data).hexdigest() != manifest.tokenizer_file_sha256:
        raise RunError(
            f"{path}: damaged (not the file that the manifest was written for); delete it and give "
            "the command that recorded the run again"
        )
    return data.decode()


def text_hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
