"""Looking at every file that a number can come from."""

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
"""What earlier versions locked while they recorded; it holds nothing."""
LISTED = ("cells", "pending", "rows", "grades", "signals")
"""The kinds of parts, in the order in which a check lists them beside a process that records."""


class State(StrEnum):
    """What a file in a folder of runs can be."""

    SOUND = "sound"
    PROBLEM = "problems"  # damaged, missing, or of another run
    LEFTOVER = "leftovers"  # of a process that was killed; no number comes from it
    FOREIGN = "foreign"  # not written by c4, and left alone


@dataclass(frozen=True)
class Finding:
    """What was found at one file."""

    path: Location
    state: State = State.SOUND
    what: str = ""
    """In words that name the file, where it is not sound."""


def check_run(folder: Location) -> Iterator[Finding]:
    """Read every file of a run once; gives a finding for each of `run_files`.

    A process may be recording meanwhile: what it removes is passed over, what it adds is read too.
    """
    tokenizer = folder / TOKENIZER
    found: Iterator[Finding | None]
    try:
        manifest = read_manifest(folder)
    except RunError as error:
        yield Finding(folder / MANIFEST, State.PROBLEM, str(error))
        what = f"cannot be judged without {MANIFEST}" if file_exists(tokenizer) else "missing"
        yield Finding(tokenizer, State.PROBLEM, f"{tokenizer}: {what}")
        # What the parts belong to cannot be told, but damage can.
        found = (_finding(part.path, partial(_read_whole, part)) for part in run_parts(folder))
    else:
        yield Finding(folder / MANIFEST)
        yield from filter(None, [_finding(tokenizer, partial(read_tokenizer, folder, manifest))])
        found = _RunCheck(folder, manifest).findings()
    yield from filter(None, found)
    yield from map(_stranger, _strangers(folder))


def run_files(folder: Location) -> list[Location]:
    """The files that `check_run` looks at, in its order; the first two may be missing."""
    parts = [part.path for part in run_parts(folder)]
    return [folder / MANIFEST, folder / TOKENIZER, *parts, *_strangers(folder)]


def _strangers(folder: Location) -> list[Location]:
    """What lies in a run's folder and is none of its files."""
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
    """What a check says of a file; None if the file was removed while this looked."""
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
    """The parts of a run, each read once and compared with what the others said."""

    def __init__(self, folder: Location, manifest: Manifest) -> None:
        self.folder = folder
        self.manifest = manifest
        self._seen: set[Location] = set()
        self._rows: list[Part] = []
        self._copies: set[Part] = set()
        self._pending: set[int] = set()
        self._unread: list[Part] = []
        """Parts of rows with which something is wrong."""
        self._named: dict[str, list[tuple[int, int]]] = {}
        """By the name of a part of cells: trajectories and steps, as its rows have them."""
        self._decodes: dict[int, tuple[int, Location]] = {}
        """By trajectory: a checksum of what was decoded, and the file that holds it."""
        self._claimed: set[int] = set()
        """The trajectories that the parts of rows claim so far."""
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
        """The parts that were not looked at yet; at first all of them.

        A writer seals cells, then rows, and then removes the pending files. In the order of
        `LISTED`, the trajectories of all cells are found among the pending files or the rows.
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
        """What to say of sound cells that no rows name."""
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
        """Refuse a second copy of a trajectory that was decoded otherwise."""
        here = row.decode_checksum, part.path
        known, where = self._decodes.setdefault(row.trajectory, here)
        if known != row.decode_checksum:
            raise ValueError(f"it holds another decode of trajectory {row.trajectory} than {where}")


def timing_paths(root: Location) -> list[Location]:
    """The files that `check_timings` looks at, in its order."""
    folders = timing_folders(root)
    return [p for folder in folders for p in (*list_files(folder), *list_leftovers(folder))]


def check_timings(root: Location) -> Iterator[Finding]:
    """Read every file of timings below a root; gives a finding for each of `timing_paths`."""
    for path in timing_paths(root):
        if TIMING.fullmatch(path.name):
            found = _finding(path, partial(read_call, path))
        else:
            found = _stranger(path)
        if found is not None:
            yield found
