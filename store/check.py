"""Integrity checks of every file that a reported number can come from."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from functools import partial

from c4.errors import RunError
from c4.store.cells import check_cell_order, check_cells, signal_columns
from c4.store.claims import WORK_FOLDERS
from c4.store.grades import read_grades
from c4.store.locations import Location
from c4.store.manifest import (
    DATA_FOLDERS,
    MANIFEST,
    TOKENIZER,
    Manifest,
    read_manifest,
    read_tokenizer,
)
from c4.store.parts import PART, Part, list_parts, missing_cells, naming, run_parts
from c4.store.rows import Row
from c4.store.runs import require_rows, sole_parts
from c4.store.storage import (
    LEFTOVER,
    file_exists,
    folder_exists,
    list_files,
    list_folders,
    list_leftovers,
)
from c4.store.timings import TIMING, read_call, timing_folders

OLD_LOCK = "lock"
"""Empty file that earlier versions locked while they recorded."""
LISTED = ("cells", "pending", "rows", "grades", "signals")
"""Kinds of parts, in the order in which a check lists them while another process may record."""


class State(StrEnum):
    """State of a file in a folder of runs."""

    SOUND = "sound"
    PROBLEM = "problems"  # damaged, missing, or of another run
    LEFTOVER = "leftovers"  # left by a killed process; no number comes from it
    FOREIGN = "foreign"  # not written by c4, and left alone


@dataclass(frozen=True)
class Finding:
    """The result of checking one file."""

    path: Location
    state: State = State.SOUND
    what: str = ""
    """Message that names the file; empty if the file is sound."""


def check_run(folder: Location) -> Iterator[Finding]:
    """Read every file of a run once and yield a finding for each of `run_files`.

    A process may be recording meanwhile: files it removes are skipped, files it adds are read too.
    """
    tokenizer = folder / TOKENIZER
    found: Iterator[Finding | None]
    try:
        manifest = read_manifest(folder)
    except RunError as error:
        yield Finding(folder / MANIFEST, State.PROBLEM, str(error))
        what = f"cannot be judged without {MANIFEST}" if file_exists(tokenizer) else "missing"
        yield Finding(tokenizer, State.PROBLEM, f"{tokenizer}: {what}")
        # Without a manifest, nothing shows which run the parts belong to; damage still shows.
        found = (_finding(part.path, partial(_read_whole, part)) for part in run_parts(folder))
    else:
        yield Finding(folder / MANIFEST)
        yield from filter(None, [_finding(tokenizer, partial(read_tokenizer, folder, manifest))])
        found = _RunCheck(folder, manifest).findings()
    yield from filter(None, found)
    yield from map(_stranger, _strangers(folder))


def run_files(folder: Location) -> list[Location]:
    """List the files that `check_run` reads, in its order; the first two may be missing."""
    parts = [part.path for part in run_parts(folder)]
    return [folder / MANIFEST, folder / TOKENIZER, *parts, *_strangers(folder)]


def _strangers(folder: Location) -> list[Location]:
    """List the files and folders in a run's folder that do not belong to the run."""
    own = {folder / MANIFEST, folder / TOKENIZER, folder / OLD_LOCK}
    kinds = [folder / name for name in DATA_FOLDERS]
    at_work = [folder / name for name in WORK_FOLDERS]
    found = []
    for place in (folder, *kinds):
        files = (p for p in list_files(place) if place == folder or not PART.fullmatch(p.name))
        found += [*files, *list_leftovers(place)]
        found += [f for f in list_folders(place) if f not in (*kinds, *at_work)]
    for place in at_work:
        found += [*list_files(place), *list_leftovers(place), *list_folders(place)]
    return [path for path in found if path not in own]


def _stranger(path: Location) -> Finding:
    if path.parent.name in WORK_FOLDERS:
        what = f"{path}: of a worker that is at work, or was killed; the next one clears it away"
        return Finding(path, State.LEFTOVER, what)
    if LEFTOVER.fullmatch(path.name) and not folder_exists(path):
        return Finding(path, State.LEFTOVER, f"{path}: left by a process that was killed")
    return Finding(path, State.FOREIGN, f"{path}: not written by c4, and left alone")


def _read_whole(part: Part, run: str | None = None) -> None:
    part.load(run).file.read()


def _finding(path: Location, check: Callable[[], object]) -> Finding | None:
    """Return the result of a check of a file; None if the file was removed meanwhile."""
    try:
        with naming(path):
            try:
                check()
            except FileNotFoundError:
                return None
    except RunError as error:
        return Finding(path, State.PROBLEM, str(error))
    return Finding(path)


class _RunCheck:
    """Check of a run's parts: reads each part once and compares it with the others."""

    def __init__(self, folder: Location, manifest: Manifest) -> None:
        self.folder = folder
        self.manifest = manifest
        self._seen: set[Location] = set()
        self._rows: list[Part] = []
        self._copies: set[Part] = set()
        self._pending: set[int] = set()
        self._unread: list[Part] = []
        """Parts of rows that failed their check."""
        self._named: dict[str, list[tuple[int, int]]] = {}
        """By the name of a part of cells: trajectories and steps according to its rows."""
        self._decodes: dict[int, tuple[int, Location]] = {}
        """By trajectory: the checksum of its decode, and the file that holds it."""
        self._claimed: set[int] = set()
        """Trajectories in the parts of rows that were checked so far."""
        self._checks: dict[str, Callable[[Part], object]] = {
            "rows": self._check_rows,
            "cells": self._check_cells,
            "pending": self._check_pending,
            "grades": lambda part: read_grades(part, self.manifest.digest),
            "signals": lambda part: _read_whole(part, self.manifest.digest),
        }

    def findings(self) -> Iterator[Finding | None]:
        while parts := self._unseen():
            yield from map(self._look_at, parts)

    def _unseen(self) -> list[Part]:
        """List the parts that were not checked yet; at first all of them.

        A writer seals cells, then rows, and then removes the pending files. Listing in the order of
        `LISTED` finds the trajectories of all cells among the pending files or the rows.
        """
        listed = {kind: list_parts(self.folder / kind) for kind in LISTED}
        self._rows = listed["rows"]
        with suppress(RunError, FileNotFoundError):
            self._copies = set(self._rows) - set(sole_parts(self._rows, self.manifest))
        self._pending = {part.first for part in listed["pending"]}
        parts = [p for kind in DATA_FOLDERS for p in listed[kind] if p.path not in self._seen]
        self._seen |= {part.path for part in parts}
        return parts

    def _look_at(self, part: Part) -> Finding | None:
        kind = part.path.parent.name
        if part in self._copies:
            what = f"{part.path}: a second copy of its rows; the next recording removes it"
            return Finding(part.path, State.LEFTOVER, what)
        finding = _finding(part.path, partial(self._checks[kind], part))
        is_sound = finding == Finding(part.path)
        if kind == "rows" and not is_sound:
            self._unread.append(part)
        if kind == "cells" and is_sound and part.path.name not in self._named:
            return self._judge_unnamed(part)
        return finding

    def _judge_unnamed(self, cells: Part) -> Finding:
        """Return the finding for sound cells that no checked rows name."""
        if any(
            number in rows.trajectories for rows in self._unread for number in cells.trajectories
        ):
            return Finding(cells.path)  # these rows may name them
        try:
            require_rows(cells, self._rows, self._pending)
        except RunError as error:
            return Finding(cells.path, State.PROBLEM, str(error))
        what = f"{cells.path}: cells that no rows name; the next recording removes them"
        return Finding(cells.path, State.LEFTOVER, what)

    def _check_rows(self, part: Part) -> None:
        contents = part.load(self.manifest.digest)
        rows = contents.rows()
        if self._claimed.intersection(contents.trajectories):
            raise RunError(f"{part.path}: holds trajectories that another part of rows holds too")
        self._claimed.update(contents.trajectories)
        for row in rows:
            self._compare(row, part)
        if not self.manifest.identity["cells"]:
            return
        name = contents.cells_name or ""
        if not PART.fullmatch(name) or not file_exists(self.folder / "cells" / name):
            raise missing_cells(part)
        self._named[name] = [(row.trajectory, row.steps) for row in rows]

    def _check_cells(self, part: Part) -> None:
        contents = part.load(self.manifest.digest)
        self._check_values(contents)
        stored = [(number, steps) for number, steps, _ in contents.shapes]
        if self._named.get(part.path.name, stored) != stored:
            raise ValueError("its rows have other trajectories, or other numbers of steps")

    def _check_values(self, contents: Part) -> None:
        table = contents.cell_table()
        check_cell_order(table, contents.shapes)
        check_cells(signal_columns(table), self.manifest.identity["vocab_size"])

    def _check_pending(self, part: Part) -> None:
        contents = part.load(self.manifest.digest)
        (row,) = contents.rows()
        if contents.has_cells != self.manifest.identity["cells"]:
            raise ValueError("it has cells, or none, unlike its run")
        if contents.has_cells:
            self._check_values(contents)
        self._compare(row, part)

    def _compare(self, row: Row, part: Part) -> None:
        """Refuse a second copy of a trajectory with a different decode."""
        here = row.decode_checksum, part.path
        known, where = self._decodes.setdefault(row.trajectory, here)
        if known != row.decode_checksum:
            raise ValueError(f"it holds another decode of trajectory {row.trajectory} than {where}")


def timing_paths(root: Location) -> list[Location]:
    """List the files that `check_timings` reads, in its order."""
    folders = timing_folders(root)
    return [p for folder in folders for p in (*list_files(folder), *list_leftovers(folder))]


def check_timings(root: Location) -> Iterator[Finding]:
    """Read every file of timings below a root and yield a finding for each of `timing_paths`."""
    for path in timing_paths(root):
        if TIMING.fullmatch(path.name):
            found = _finding(path, partial(read_call, path))
        else:
            found = _stranger(path)
        if found is not None:
            yield found
