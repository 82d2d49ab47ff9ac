"""Looking at every file that a number can come from."""

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa

from c4.errors import RunError
from c4.store.manifest import read_manifest, read_tokenizer
from c4.store.parts import Part, list_parts, open_part
from c4.store.timings import read_call, timing_files

CHECKED = ("rows", "cells", "pending", "grades")
"""Folders whose parts hold a run's numbers; signals are a cache that checks itself."""


def run_files(folder: Path) -> list[Path]:
    """The files of a run that `check_run` looks at."""
    parts = [part.path for part in _parts(folder)]
    return [folder / "manifest.json", folder / "tokenizer.json", *parts]


def check_run(folder: Path) -> Iterator[RunError | None]:
    """Read every file of a run; gives an error for each that is damaged or of another run."""
    try:
        manifest = read_manifest(folder)
    except RunError as error:
        yield error
        return
    yield None
    try:
        read_tokenizer(folder, manifest)
        yield None
    except RunError as error:
        yield error
    for part in _parts(folder):
        yield _check_part(part, manifest.digest)


def _parts(folder: Path) -> list[Part]:
    return [part for name in CHECKED for part in list_parts(folder / name)]


def _check_part(part: Part, digest: str) -> RunError | None:
    try:
        open_part(part, digest).read()
    except RunError as error:
        return error
    except (pa.ArrowException, OSError) as error:
        return RunError(f"{part.path}: cannot be read ({error})")
    return None


def check_timings(root: Path) -> Iterator[RunError | None]:
    """Read every file of timings below a root."""
    for path in timing_files(root):
        try:
            read_call(path)
            yield None
        except RunError as error:
            yield error
