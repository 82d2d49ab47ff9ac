"""Reading a run back: rows and, if kept, cells, with at most one part of cells in memory."""

import logging
import shlex
from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from c4.errors import ConfigError, RunError
from c4.errors.text import spell_ranges, visible_line
from c4.store.cells import Cells
from c4.store.grades import Grades
from c4.store.labels import label_under
from c4.store.locations import Location, cache_folder, parse_location
from c4.store.manifest import (
    BENCH_FOLDER,
    TOKENIZER,
    Manifest,
    is_baseline,
    is_run,
    read_manifest,
    read_tokenizer,
)
from c4.store.parts import Part, list_parts, missing_cells
from c4.store.rows import Row
from c4.store.run_task import task_of_run, task_typed
from c4.store.storage import file_exists, find_folders, folder_exists, is_remote
from c4.tasks import AnswerReading, Shape, Task, find_task
from c4.tasks.registry import REGISTRY, names_task, unknown_task
from c4.tasks.vocabulary import Vocabulary

log = logging.getLogger(__name__)

LOADED_BYTES = 4 * 2**20
"""Bytes of parts that a run keeps in memory: one part of cells and many parts of rows."""


@dataclass(frozen=True)
class Trajectory:
    """One decode with the cells of every step."""

    row: Row
    cells: Cells


class Run:
    """The decodes of one model, task and method. Iterating yields trajectories in order.

    A run is opened under a reading, which affects signals, texts and grades, but nothing that was
    decoded.
    """

    def __init__(
        self,
        folder: Location,
        reading: AnswerReading | None = None,
        tasks: Collection[Task] = (),
    ) -> None:
        """Open a run.

        Args:
            tasks: the tasks that the user named; one of them may be the run's.
        """
        self.folder = folder
        self.reading = reading or AnswerReading()
        self.manifest: Manifest = read_manifest(folder)
        self.tasks = tuple(tasks)
        try:
            self._task = task_of_run(self.manifest, self.tasks)
        except ConfigError as error:
            raise RunError(f"{self.folder}: {error}") from error
        self.parts = _find_parts(folder, self.manifest)
        self._loaded: dict[Part, int] = {}
        """The parts in memory and their sizes in bytes, least recently used first."""

    @cached_property
    def indices(self) -> list[int]:
        """The numbers of all trajectories, in order, read from the files' content."""
        found: list[int] = []
        for part in self.parts:
            try:
                found += self._load_rows(part).trajectories
            except FileNotFoundError:
                now = self._sealed_since(part).indices
                found += [index for index in now if index in part.trajectories]
        return found

    def __repr__(self) -> str:
        graded = [row.correct for row in self.rows() if row.correct is not None]
        accuracy = f", accuracy {sum(graded) / len(graded):.1%}" if graded else ""
        told = f"{self.model} {self.task_name} {self.method}, n={len(self)}{accuracy}"
        return f"<Run {visible_line(told)}>"  # manifests are untrusted

    @property
    def task_name(self) -> str:
        return str(self.manifest.identity["task"])

    @property
    def task(self) -> Task:
        """The run's task; a task that is code must be named when the run is opened."""
        if self._task is None:
            typed = task_typed(self.manifest)
            raise RunError(
                f"{self.folder}: the task {self.task_name} is code of your own, which a recording "
                f"names and never loads; name it as it was recorded: --task {shlex.quote(typed)}, "
                f"or c4.open({str(self.folder)!r}, task={typed!r})"
            )
        return self._task

    @property
    def has_task(self) -> bool:
        """Whether the task is known; a task that is code is known only if the user named it."""
        return self._task is not None

    @property
    def model(self) -> str:
        return str(self.manifest.identity["model"])

    @property
    def method(self) -> str:
        """The method's label, which gives its gate's reading only if the run's differs."""
        return label_under(self.manifest.identity, self.reading)

    @property
    def is_baseline(self) -> bool:
        """Whether the run is the full decode that others are compared with, under any label."""
        return is_baseline(self.manifest.identity)

    @property
    def has_cells(self) -> bool:
        """Whether the cells of every step were kept."""
        return bool(self.manifest.identity["cells"])

    @property
    def shape(self) -> Shape:
        return self.manifest.shape

    @property
    def signals_folder(self) -> Location:
        """The folder for cached signals: in the run, or on this machine if the run is remote."""
        if is_remote(self.folder):
            return cache_folder() / self.manifest.digest / "signals"
        return self.folder / "signals"

    @cached_property
    def vocabulary(self) -> Vocabulary:
        """The vocabulary that decodes the run's token ids."""
        tokenizer = read_tokenizer(self.folder, self.manifest)
        try:
            return Vocabulary(tokenizer, self.manifest.identity["end_ids"])
        except Exception as error:  # the library raises no narrower class
            raise RunError(f"{self.folder / TOKENIZER}: not a tokenizer ({error})") from error

    @cached_property
    def _grades(self) -> Grades:
        return Grades(self.folder, self.manifest.digest, self.reading)

    def text(self, ids: Sequence[int]) -> str:
        """Return the text of tokens under the run's reading."""
        return self.vocabulary.text(ids, self.reading.ending)

    def __len__(self) -> int:
        return len(self.indices)

    def __iter__(self) -> Iterator[Trajectory]:
        for part in self.parts:
            yield from self.read(part)

    def rows(self) -> Iterator[Row]:
        """Yield the row of every trajectory, with its grade under the run's reading."""
        for part in self.parts:
            yield from self.read_rows(part)

    def cells(self) -> Iterator[tuple[int, Cells]]:
        """Yield every trajectory's number and cells; the fastest way through a run."""
        for part in self.parts:
            yield from self.read_cells(part)

    def trajectory(self, index: int) -> Trajectory:
        """Return one trajectory by its number."""
        for part in self.parts:
            if index in part.trajectories:
                for found in self.read(part):
                    if found.row.trajectory == index:
                        return found
        raise self.no_trajectory(index)

    def no_trajectory(self, index: int) -> RunError:
        """Return the error for a missing trajectory; it lists the numbers that exist."""
        there = spell_ranges(self.indices) or "none"
        return RunError(f"{self.folder}: no trajectory {index!r}; there are {there}")

    def read(self, part: Part) -> Iterator[Trajectory]:
        """Yield the trajectories of one part."""
        rows = self.read_rows(part)
        for row, (number, cells) in zip(rows, self.read_cells(part), strict=True):
            if (row.trajectory, row.steps) != (number, len(cells.token)):
                raise RunError(f"{part.path}: its rows and its cells are not of one decode")
            yield Trajectory(row, cells)

    def read_cells(self, part: Part) -> Iterator[tuple[int, Cells]]:
        """Yield the number and the cells of each trajectory in a part, without its row."""
        for numbers, batch in self.read_batches(part):
            for i, number in enumerate(numbers):
                yield number, batch[i]

    def read_batches(self, part: Part) -> list[tuple[list[int], Cells]]:
        """Return the numbers and cells of a part in batches of one shape: (n, steps, positions)."""
        if not self.has_cells or part.cells is None:
            raise RunError(
                f"{self.folder}: only results are kept here; decode with every step by: "
                f"c4 run --cells --task {self.task_name} --method NAME --fresh"
            )
        try:
            self._load_rows(part)
            return self._load(part.cells).batches()
        except FileNotFoundError:
            found = self._sealed_since(part).trajectory(part.first)
            return [([found.row.trajectory], found.cells[None])]

    def read_rows(self, part: Part) -> list[Row]:
        """Return the rows of one part, with their grades under the run's reading."""
        try:
            rows = self._load_rows(part).rows()
        except FileNotFoundError:
            now = self._sealed_since(part)
            return [row for row in now.rows() if row.trajectory in part.trajectories]
        return [replace(row, **self._grades.of(row.trajectory, vars(row))) for row in rows]

    def _load_rows(self, part: Part) -> Part:
        """Load a part of rows and check that it names the part of cells found for it."""
        self._load(part)
        cells = part.sealed_cells
        if cells is not None and part.cells_name != cells.path.name:
            self._load(cells)  # cells of another run raise a more precise error here
            raise RunError(
                f"{cells.path}: not the cells that were sealed with {part.path.name}, which names "
                f"{part.cells_name or 'none'}; bring those back, or delete both files and record "
                "again"
            )
        return part

    def _load(self, part: Part) -> Part:
        """Load a part, and forget the least recently used parts beyond `LOADED_BYTES`."""
        part.load(self.manifest.digest)
        self._loaded.pop(part, None)
        self._loaded[part] = len(part.data)
        for oldest in list(self._loaded)[:-1]:
            if sum(self._loaded.values()) > LOADED_BYTES:
                oldest.forget()
                del self._loaded[oldest]
        return part

    def _sealed_since(self, part: Part) -> "Run":
        """Reopen the run after a writer has sealed a pending file, which is then gone."""
        now = Run(self.folder, self.reading, self.tasks)
        if not part.is_pending or part in now.parts:
            raise RunError(f"{part.path}: gone while it was being read")
        return now


def _find_parts(folder: Location, manifest: Manifest) -> list[Part]:
    # List in the reverse of the order in which a writer seals: a trajectory that is sealed
    # meanwhile is then found at least once.
    pending = list_parts(folder / "pending")
    rows = sole_parts(list_parts(folder / "rows"), manifest)
    if manifest.identity["cells"]:
        beside: dict[range, list[Part]] = {}
        for cells in list_parts(folder / "cells"):
            beside.setdefault(cells.trajectories, []).append(cells)
        for i, part in enumerate(rows):
            found = beside.get(part.trajectories)
            if not found:
                raise missing_cells(part)
            # Of several parts of cells, the rows name theirs.
            own = [c for c in found if len(found) > 1 and c.path.name == part.cells_name]
            part.forget()
            rows[i] = replace(part, sealed_cells=(own or found)[0])
    # A killed writer may have sealed a trajectory without removing its pending file.
    waiting = {part.first: part for part in pending if not covers(rows, part.first)}
    return sorted([*rows, *waiting.values()], key=lambda part: part.first)


def sole_parts(rows: Sequence[Part], manifest: Manifest) -> list[Part]:
    """Return the parts of rows without duplicates.

    A worker that lost its claim while sealing may have sealed the same trajectories as another. If
    both parts hold the same decodes of the same trajectories, the first by name counts. Any other
    overlap is refused.
    """
    kept: list[Part] = []
    for part in rows:
        if not kept or part.first > kept[-1].last:
            kept.append(part)
        elif not _are_copies(kept[-1], part, manifest):
            raise RunError(
                f"{part.path}: holds trajectories that {kept[-1].path.name} holds too: two runs "
                "were copied into one folder; move one out, and join them with: c4 runs --merge"
            )
    return kept


def _are_copies(one: Part, other: Part, manifest: Manifest) -> bool:
    if one.trajectories != other.trajectories:
        return False
    first, second = (
        [row.decode_checksum for row in part.load(manifest.digest).rows()] for part in (one, other)
    )
    one.forget()
    other.forget()
    return first == second


def covers(rows: Sequence[Part], number: int) -> bool:
    """Whether one of the sorted parts covers a trajectory according to its name."""
    at = bisect_right(rows, number, key=lambda part: part.first) - 1
    return at >= 0 and number <= rows[at].last


def require_rows(cells: Part, rows: Sequence[Part], pending: Collection[int]) -> None:
    """Refuse cells with a trajectory neither pending nor sealed, because its row was lost."""
    if not all(number in pending or covers(rows, number) for number in cells.trajectories):
        raise RunError(
            f"{cells.path}: its rows are missing; bring them back, or delete that file of "
            "cells too and record again"
        )


def refuse_file(place: Location) -> None:
    """Refuse a path to a file, because a folder of runs is needed."""
    if not is_remote(place) and file_exists(place):
        raise RunError(
            f"{place}: this is a file, where a folder of runs is needed; if `c4 import` wrote it, "
            f"see when its answers settled with: c4 report stabilization --runs '{place}'"
        )


def open_run(
    path: str | Location, reading: AnswerReading | None = None, tasks: Collection[Task] = ()
) -> Run:
    """Open one run, given the folder that holds its manifest.json, under a reading.

    Args:
        tasks: the tasks that the user named; to be known, a task that is code must be among them.
    """
    folder = parse_location(path)
    refuse_file(folder)
    if not folder_exists(folder):
        raise RunError(f"{folder}: no such folder")
    return Run(folder, reading, tasks)


def find_runs(root: str | Location) -> list[Location]:
    """Find the folders of all runs below a root, in order; or the root, if it is a run itself.

    A run that has lost its manifest is found too; opening it raises an error.
    """
    root = parse_location(root)
    refuse_file(root)
    if is_run(root):
        return [root]
    return [folder for folder in find_folders(root, is_kept_apart) if is_run(folder)]


def find_run(path: str | Location, or_all: str = "") -> Location:
    """Return the folder of one run: the given folder, or the only run below it.

    Args:
        or_all: hint on how to select all runs, appended to the error if there are several.
    """
    folders = find_runs(path)
    if len(folders) > 1:
        some = ", ".join(str(folder) for folder in folders[:3])
        more = ", …" if len(folders) > 3 else ""
        raise RunError(f"{path} holds {len(folders)} runs ({some}{more}); name one of them{or_all}")
    return folders[0] if folders else parse_location(path)


def is_kept_apart(name: str) -> bool:
    """Whether a folder of this name is that of a run or of the timings."""
    return name.startswith("method=") or name == BENCH_FOLDER


def find_recordings(
    root: str | Location,
    reading: AnswerReading | None = None,
    tasks: Collection[Task] = (),
) -> list[Run]:
    """Find the recorded full decodes below a root; or the run at the root, of any method.

    Runs of other methods are returned only if the root is the run itself.

    Args:
        tasks: the tasks to include; all tasks if empty.
    """
    folders = find_runs(root)
    if folders == [parse_location(root)]:
        return with_known_task([open_run(root, reading, tasks)])
    names = {task.name for task in tasks}
    runs = readable_runs(folders, reading, tasks)
    runs = with_known_task([run for run in runs if not names or run.task_name in names])
    return [run for run in runs if run.is_baseline and run.has_cells]


def find_recorded_task(name: str, root: Location) -> Task:
    """Find the task that a user named, also by the task name of recorded runs below a folder."""
    if names_task(name):
        return find_task(name)
    manifests = {}
    for folder in find_runs(root):
        try:
            manifest = read_manifest(folder)
        except RunError:  # opening the run reports it
            continue
        manifests[manifest.identity["task"]] = manifest
    if name not in manifests:
        raise unknown_task(name, dict.fromkeys([*REGISTRY.names, *manifests]))
    task = task_of_run(manifests[name])
    if task is None:
        raise ConfigError(
            f"the task {name} is code of your own, which a recording names and never loads; name "
            f"it as it was recorded: --task {shlex.quote(task_typed(manifests[name]))}"
        )
    return task


def find_recorded_tasks(names: Iterable[str], root: Location) -> dict[str, Task]:
    """Find the tasks that a user named, by the text typed; refuse two tasks with one name."""
    found = {name: find_recorded_task(name, root) for name in names}
    typed: dict[str, str] = {}
    for name, task in found.items():
        other = found[typed.setdefault(task.name, name)]
        if (other.definition, other.rows) != (task.definition, task.rows):
            raise ConfigError(
                f"--task {name}: results of it and of {typed[task.name]} would both go by "
                f"{task.name}; rename one of the tasks"
            )
    return found


def with_known_task(runs: Sequence[Run], asked: Collection[str] = ()) -> list[Run]:
    """Return the runs whose task is known; a task that is code must be named by the user.

    If no run is left, raise an error about the first one dropped.

    Args:
        asked: names of the tasks that the user wants; other runs are dropped without a warning.
    """
    known = [run for run in runs if run.has_task]
    notes = [
        f"{run.folder}: its task {run.task_name} is not c4's own; name it as when it was recorded, "
        f"as in --task {shlex.quote(task_typed(run.manifest))}"
        for run in runs
        if not run.has_task and (not asked or run.task_name in asked)
    ]
    if notes and not known:
        raise RunError(notes[0])
    for note in notes:
        log.warning("passed over: %s", note)
    return known


def readable_runs(
    folders: Sequence[Location],
    reading: AnswerReading | None = None,
    tasks: Collection[Task] = (),
) -> list[Run]:
    """Return the runs that can be opened, and log a warning for each of the others.

    If none can be opened, raise the first error.
    """
    runs: list[Run] = []
    failures: list[RunError] = []
    for folder in folders:
        try:
            run = open_run(folder, reading, tasks)
            len(run)  # reads the parts of rows, so damaged ones fail here
            runs.append(run)
        except RunError as error:
            failures.append(error)
    if failures and not runs:
        raise failures[0]
    for failure in failures:
        log.warning("passed over: %s", failure)
    return runs
