"""Looking at every file that a number can come from."""

import json
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from pathlib import Path

from c4.errors import RunError
from c4.store.cells import signal_columns
from c4.store.contents import Contents
from c4.store.grades import read_grades
from c4.store.manifest import (
    DATA_FOLDERS,
    MANIFEST,
    TOKENIZER,
    Manifest,
    read_manifest,
    read_tokenizer,
)
from c4.store.parts import Part, list_parts, naming, open_part
from c4.store.rows import Row
from c4.store.storage import LOCK, list_files, list_folders, list_leftovers
from c4.store.timings import TIMING, read_call, timing_folders
from c4.store.values import check_cell_order, check_cells


class State(StrEnum):
    """What a file in a folder of runs can be."""

    SOUND = "sound"
    PROBLEM = "problems"  # damaged, missing, or of another run
    LEFTOVER = "leftovers"  # of a process that was killed; no number comes from it
    FOREIGN = "foreign"  # not written by c4, and left alone


@dataclass(frozen=True)
class Finding:
    """What was found at one file."""

    path: Path
    state: State = State.SOUND
    what: str = ""
    """In words that name the file, where it is not sound."""


def check_run(folder: Path) -> Iterator[Finding]:
    """Read every file of a run once; gives a finding for each of `run_files`."""
    manifest: Manifest | None = None
    try:
        manifest = read_manifest(folder)
        yield Finding(folder / MANIFEST)
    except RunError as error:
        yield Finding(folder / MANIFEST, State.PROBLEM, str(error))
    yield _finding(folder / TOKENIZER, lambda: manifest and read_tokenizer(folder, manifest))
    if manifest is None:  # what the parts belong to cannot be told, but damage can
        yield from (_finding(part.path, partial(_read_whole, part)) for part in _parts(folder))
    else:
        yield from _RunCheck(folder, manifest).findings()
    yield from map(_stranger, _strangers(folder))


def run_files(folder: Path) -> list[Path]:
    """The files that `check_run` looks at, in its order; the first two may be missing."""
    parts = [part.path for part in _parts(folder)]
    return [folder / MANIFEST, folder / TOKENIZER, *parts, *_strangers(folder)]


def _parts(folder: Path) -> list[Part]:
    return [part for name in DATA_FOLDERS for part in list_parts(folder / name)]


def _strangers(folder: Path) -> list[Path]:
    """What lies in a run's folder and is none of its files."""
    own = {folder / MANIFEST, folder / TOKENIZER, folder / LOCK}
    own |= {part.path for part in _parts(folder)}
    places = [folder, *(folder / name for name in DATA_FOLDERS)]
    found = [path for place in places for path in (*list_files(place), *list_leftovers(place))]
    found += [f for place in places for f in list_folders(place) if f not in places]
    return [path for path in found if path not in own]


def _stranger(path: Path) -> Finding:
    if path in list_leftovers(path.parent):
        return Finding(path, State.LEFTOVER, f"{path}: left by a process that was killed")
    return Finding(path, State.FOREIGN, f"{path}: not written by c4, and left alone")


def _read_whole(part: Part, run: str | None = None) -> None:
    open_part(part, run).read()


def _finding(path: Path, check: Callable[[], object]) -> Finding:
    try:
        with naming(path):
            check()
    except RunError as error:
        return Finding(path, State.PROBLEM, str(error))
    except FileNotFoundError:
        # A recording beside the check seals pending trajectories away, and caches are replaced.
        if path.parent.name not in ("pending", "signals"):
            return Finding(path, State.PROBLEM, f"{path}: gone while it was being checked")
    return Finding(path)


class _RunCheck:
    """The parts of a run, each read once and compared with what the others said."""

    def __init__(self, folder: Path, manifest: Manifest) -> None:
        self.manifest = manifest
        self._parts = {name: list_parts(folder / name) for name in DATA_FOLDERS}
        self._cells = {part.path.name for part in self._parts["cells"]}
        self._named: dict[str, list[tuple[int, int]]] = {}
        """By the name of a part of cells: trajectories and steps, as its rows have them."""
        self._waiting = {part.first for part in self._parts["pending"]}
        self._decodes: dict[int, tuple[int, Path]] = {}
        """By trajectory that may have copies: a checksum of the decode, and its file."""
        self._claimed = -1
        """The last trajectory that the parts of rows claim so far."""

    def findings(self) -> Iterator[Finding]:
        checks: dict[str, Callable[[Part], object]] = {
            "rows": self._check_rows,
            "cells": self._check_cells,
            "pending": self._check_pending,
            "grades": lambda part: read_grades(part, self.manifest.digest),
            "signals": lambda part: _read_whole(part, self.manifest.digest),
        }
        for name, parts in self._parts.items():
            for part in parts:
                finding = _finding(part.path, partial(checks[name], part))
                yield self._or_unused(finding, name)

    def _or_unused(self, finding: Finding, kind: str) -> Finding:
        """Say so of sound cells that no rows name: a kill came between the two."""
        unused = kind == "cells" and finding.path.name not in self._named
        if not unused or finding.state is State.PROBLEM:
            return finding
        what = f"{finding.path}: cells that no rows name; the next recording removes them"
        return Finding(finding.path, State.LEFTOVER, what)

    def _check_rows(self, part: Part) -> None:
        contents = Contents.of(part, self.manifest)
        rows = contents.rows()
        if part.first <= self._claimed:
            raise RunError(f"{part.path}: holds trajectories that another part of rows holds too")
        self._claimed = part.last
        for row in rows:
            if row.trajectory in self._waiting:
                self._compare(row, part)
        if not self.manifest.identity["cells"]:
            return
        name = contents.cells_name or ""
        if name not in self._cells:
            raise RunError(f"{part.path}: its cells are missing: {name or 'it names none'}")
        self._named[name] = [(row.trajectory, row.steps) for row in rows]

    def _check_cells(self, part: Part) -> None:
        contents = Contents.of(part, self.manifest)
        self._check_values(contents)
        stored = [(number, steps) for number, steps, _ in contents.shapes]
        if self._named.get(part.path.name, stored) != stored:
            raise ValueError("its rows have other trajectories, or other numbers of steps")

    def _check_values(self, contents: Contents) -> None:
        table = contents.cell_table()
        check_cell_order(table, contents.shapes)
        check_cells(signal_columns(table), self.manifest.identity["vocab_size"])

    def _check_pending(self, part: Part) -> None:
        contents = Contents.of(part, self.manifest)
        (row,) = contents.rows()
        if contents.has_cells != self.manifest.identity["cells"]:
            raise ValueError("it has cells, or none, unlike its run")
        if contents.has_cells:
            self._check_values(contents)
        self._compare(row, part)

    def _compare(self, row: Row, part: Part) -> None:
        """Refuse a second copy of a trajectory that was decoded otherwise."""
        decode = zlib.crc32(json.dumps(row.decode, sort_keys=True).encode())
        known, where = self._decodes.setdefault(row.trajectory, (decode, part.path))
        if known != decode:
            raise ValueError(f"it holds another decode of trajectory {row.trajectory} than {where}")


def timing_paths(root: Path) -> list[Path]:
    """The files that `check_timings` looks at, in its order."""
    folders = timing_folders(root)
    return [p for folder in folders for p in (*list_files(folder), *list_leftovers(folder))]


def check_timings(root: Path) -> Iterator[Finding]:
    """Read every file of timings below a root; gives a finding for each of `timing_paths`."""
    for path in timing_paths(root):
        if TIMING.fullmatch(path.name):
            yield _finding(path, partial(read_call, path))
        else:
            yield _stranger(path)
