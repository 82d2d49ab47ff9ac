"""Trajectories of other projects: when their answers settled, as far as their files tell."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from pathlib import Path, PurePath

import polars as pl

from c4.analysis.exchange import klass, prophet
from c4.analysis.exchange.courses import Course
from c4.analysis.library import Library
from c4.analysis.stabilization import SETTLING, stabilization_summary
from c4.errors import DataError, NotReplayable
from c4.store import Run
from c4.store.locations import Location
from c4.tasks import TASKS, Task, find_task

IMPORTED = pl.Schema(
    {
        **SETTLING,
        "source": pl.String(),  # see `Source`
        "file": pl.String(),  # relative to the folder that was imported
        "steps": pl.Int32(),  # forward passes that the decode took
        "budget": pl.Int32(),  # what progress is measured by
        "correct": pl.Boolean(),  # as its authors graded it; null where they did not
        "answer": pl.String(),
        "target": pl.String(),
        "commit_step": pl.List(pl.Int32()),  # per position, from 1; 0 if it was given
    }
)
"""One row per trajectory. `stabilization_figure` draws such a frame."""


class Source(StrEnum):
    """Whose trajectories can be read."""

    PROPHET = "prophet"
    KLASS = "klass"


@dataclass(frozen=True)
class _Format:
    """How the files of one project are found and read."""

    find: Callable[[Path], list[Path]]
    read: Callable[[Path, str, int | None], Course]
    what: str
    """What its files are called, for a folder that has none."""


FORMATS = {
    Source.PROPHET: _Format(prophet.find_files, prophet.read_course, prophet.FILES),
    Source.KLASS: _Format(klass.find_files, klass.read_course, klass.FILES),
}
SETTLES = "stabilization"
"""The table and the figure of when answers settle."""
NO_GATES = (
    "no gate can be asked about them: the files hold tokens, but not the confidence, gap and "
    "entropy of every position, which gates compare"
)


@dataclass(frozen=True)
class ImportPlan:
    """Files that are going to be read."""

    source: Source
    folder: Path
    files: Sequence[Path]
    task: Task | None = None
    """Whose answers they are; None if the names of folders say it."""
    budget: int | None = None
    refused: list[str] = field(default_factory=list)

    def task_of(self, path: Path) -> Task:
        """The task that a file is of."""
        return self.task or _task_in(self.folder, path)

    def read(self) -> Iterator[tuple[Path, Course | None]]:
        """Every file with its course; None where it was refused, which `refused` then says."""
        for path in self.files:
            try:
                yield path, FORMATS[self.source].read(path, self.task_of(path), self.budget)
            except DataError as error:
                self.refused.append(str(error))
                yield path, None


def plan_import(
    source: Source, folder: Path, task: str | None = None, budget: int | None = None
) -> ImportPlan:
    """Find the files of one project below a folder.

    Args:
        task: whose answers they are; by default, for each file, the task that a folder above it
            is named after, or else gsm8k, of which most are.
        budget: steps of the full decode, where neither file nor folder says it.
    """
    if not folder.is_dir():
        raise DataError(f"{folder}: no such folder")
    found = FORMATS[source]
    files = found.find(folder)
    if not files:
        raise DataError(f"{folder} has no files of {source}, which are called {found.what}")
    return ImportPlan(source, folder, files, find_task(task) if task else None, budget)


def _task_in(folder: Path, file: Path) -> Task:
    """The task that the nearest folder is named after, as in `question_histories_mmlu_random`."""
    inside = file.relative_to(folder).parent.parts
    for part in reversed((*folder.absolute().parts, *inside)):
        words = re.split(r"[\W_]+", part.lower())
        if named := [name for name in TASKS if name == part.lower() or name in words]:
            return TASKS[named[0]]
    return TASKS["gsm8k"]


def import_trajectories(
    plan: ImportPlan, note: Callable[[str], None] = lambda _: None
) -> pl.DataFrame:
    """Read all files of a plan; one that is damaged or tries to run code refuses them all.

    Args:
        note: told the name of every file that has been read.
    """
    rows = []
    for path, course in plan.read():
        note(path.name)
        if course is not None:
            rows.append(_row(plan, path, course))
    if plan.refused:
        raise DataError("\n".join(plan.refused))
    frame = pl.DataFrame(rows, schema=IMPORTED)
    twice = frame.filter(pl.struct("model", "trajectory").is_duplicated())
    if twice.height:
        raise DataError(f"{twice['file'][0]} and {twice['file'][1]} are of the same trajectory")
    return frame.sort("model", "trajectory")


def _row(plan: ImportPlan, path: Path, course: Course) -> dict[str, object]:
    place = path.parent.relative_to(plan.folder).as_posix()
    model = plan.source.value if place == "." else f"{plan.source}/{place}"
    task = plan.task_of(path)
    settled, shown = course.settled, course.shown
    row = {
        "model": model + course.sample,
        "task": task.name,
        "family": str(task.family),
        "cohort": model + course.sample,
        "trajectory": course.number,
        "pool": False,
        "stabilization": None if settled is None else settled / course.budget,
        "first_appearance": None if shown is None else shown / course.budget,
        "source": plan.source.value,
        "file": path.relative_to(plan.folder).as_posix(),
        "steps": course.steps,
        "budget": course.budget,
        "correct": course.correct,
        "answer": course.answer,
        "target": course.target,
        "commit_step": course.commit_step,
    }
    return {name: _encodable(value) for name, value in row.items()}


def _encodable(value: object) -> object:
    """A text as Parquet can hold it: half characters of others' files and names are escaped."""
    return value.encode(errors="backslashreplace").decode() if isinstance(value, str) else value


def is_imported(path: PurePath) -> bool:
    """Whether a place is a file, as `c4 import` writes it, and no folder of runs."""
    return path.suffix == ".parquet" and isinstance(path, Path) and path.is_file()


def refuse_imported(path: PurePath) -> None:
    """Refuse to ask gates about trajectories that were imported, and say why."""
    if is_imported(path):
        raise NotReplayable(
            f"{path} is no run; if `c4 import` wrote it, {NO_GATES}; see when answers settled "
            f"with: c4 report stabilization --runs '{path}'"
        )


def read_imported(path: Path) -> pl.DataFrame:
    """Read what `c4 import` wrote. See `IMPORTED`."""
    try:
        frame = pl.read_parquet(path, hive_partitioning=False)
    except (OSError, pl.exceptions.PolarsError) as error:
        raise DataError(f"{path}: no Parquet file that can be read ({error})") from error
    if frame.schema != IMPORTED:
        raise DataError(f"{path}: not a file of `c4 import`; its columns are others")
    return frame


class ImportedLibrary(Library):
    """Imported trajectories, for tables and figures that need to know when answers settle."""

    @cached_property
    def all_runs(self) -> list[Run]:
        return []

    @cached_property
    def settling(self) -> pl.DataFrame:
        """When answers settle. See `SETTLING`."""
        frame = read_imported(Path(self.root)).select(SETTLING.names())
        asked = [self.wants(*row) for row in frame.select("model", "task").iter_rows()]
        return frame.filter(pl.Series(asked, dtype=pl.Boolean()))


def library_kind(place: Location, names: Sequence[str] | None) -> type[Library]:
    """What answers for a place: its runs, or trajectories that were imported.

    Args:
        names: tables or figures that are asked for; of imported trajectories there is only one.
    """
    if not is_imported(place):
        return Library
    if names != [SETTLES]:
        refuse_imported(place)
    return ImportedLibrary


def summarise_imported(imported: pl.DataFrame) -> pl.DataFrame:
    """Per folder: how many, how many right, and by when half and nine in ten had settled."""
    grades = imported.group_by("model", maintain_order=True).agg(
        accuracy=pl.col("correct").mean(),
        steps=pl.col("steps").mean(),
        budget=pl.col("budget").max(),
    )
    settled = stabilization_summary(imported.select(SETTLING.names()))
    return settled.join(grades, on="model", how="left", maintain_order="left")
