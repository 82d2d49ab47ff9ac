"""Import trajectories of other projects, to show when their answers settled."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from pathlib import Path
from typing import Any

import polars as pl

from c4.analysis.exchange import klass, prophet
from c4.analysis.library import Library
from c4.analysis.stabilization import SETTLING, stabilization_summary
from c4.errors import DataError, shortened
from c4.store import Run
from c4.store.locations import Location
from c4.tasks import TASKS, Task, find_task

IMPORTED = pl.Schema(
    {
        **SETTLING,
        "source": pl.String(),  # see `Source`
        "file": pl.String(),  # relative to the folder that was imported
        "steps": pl.Int32(),  # forward passes of the decode
        "budget": pl.Int32(),  # the number of steps that is progress 1
        "correct": pl.Boolean(),  # its authors' grade; null if they gave none
        "answer": pl.String(),
        "target": pl.String(),
        "commit_step": pl.List(pl.Int32()),  # per position, from 1; 0 if it was given
    }
)
"""One row per trajectory. `stabilization_figure` can draw such a frame."""


class Source(StrEnum):
    """Projects whose trajectories can be read."""

    PROPHET = "prophet"
    KLASS = "klass"


FORMATS = {Source.PROPHET: prophet, Source.KLASS: klass}
"""Modules that find and read the files of each project.

`read_decode` returns one decode as a dict: the question's `number`; `sample`, which tells further
decodes of a question apart; `is_final`, whether the answer at each step is the final one; the
`budget`; and `commit_step`, `answer`, `target` and `correct` as in `IMPORTED`.
"""
LARGEST_NUMBER = 2**31 - 1
"""Largest question number and largest budget."""
SETTLES = "stabilization"
"""Name of the table and of the figure on when answers settle."""
NO_GATES = (
    "no gate can be asked about them: the files hold tokens, but not the confidence, gap and "
    "entropy of every position, which gates compare"
)


@dataclass(frozen=True)
class ImportPlan:
    """The files of an import and how to read them."""

    source: Source
    folder: Path
    files: Sequence[Path]
    task: Task | None = None
    """Task that the decodes answer; None to take it from folder names."""
    budget: int | None = None


def plan_import(
    source: Source, folder: Path, task: str | None = None, budget: int | None = None
) -> ImportPlan:
    """Find the files of one project below a folder.

    Args:
        task: task that the decodes answer; by default, the task in the name of a folder above
            each file, or else gsm8k, the most common one.
        budget: steps of the full decode; None if the name of the file or of a folder gives it.
    """
    if not folder.is_dir():
        raise DataError(f"{folder}: no such folder")
    files = FORMATS[source].find_files(folder)
    if not files:
        called = FORMATS[source].FILES
        raise DataError(f"{folder} has no files of {source}, which are called {called}")
    return ImportPlan(source, folder, files, find_task(task) if task else None, budget)


def _task_in(folder: Path, file: Path) -> str:
    """Task in the name of the nearest folder, as in `question_histories_mmlu_random`, or gsm8k."""
    inside = file.relative_to(folder).parent.parts
    for part in reversed((*folder.absolute().parts, *inside)):
        words = re.split(r"[\W_]+", part.lower())
        if named := [name for name in TASKS if name == part.lower() or name in words]:
            return named[0]
    return "gsm8k"


def import_trajectories(
    plan: ImportPlan, note: Callable[[str], None] = lambda _: None
) -> pl.DataFrame:
    """Read all files of a plan; if one is damaged or tries to run code, none is imported.

    Args:
        note: progress callback, called with the name of each file after it is read.
    """
    rows, refused = [], []
    for path in plan.files:
        task = plan.task or find_task(_task_in(plan.folder, path))
        try:
            decode = FORMATS[plan.source].read_decode(path, task, plan.budget)
            rows.append(_row(plan, path, task, decode))
        except DataError as error:
            refused.append(str(error))
        note(path.name)
    if refused:
        raise DataError("\n".join(refused))
    frame = pl.DataFrame(rows, schema=IMPORTED)
    twice = frame.filter(pl.struct("model", "trajectory").is_duplicated())
    if twice.height:
        raise DataError(f"{twice['file'][0]} and {twice['file'][1]} hold the same trajectory")
    return frame.sort("model", "trajectory")


def _row(plan: ImportPlan, path: Path, task: Task, decode: dict[str, Any]) -> dict[str, Any]:
    """The row of one decode. See `IMPORTED` and `FORMATS`."""
    steps, budget = len(decode["is_final"]), decode["budget"]
    if not 0 < steps <= budget:
        raise DataError(f"{path}: {steps} steps of a budget of {budget}")
    if max(decode["number"], budget) > LARGEST_NUMBER:
        raise DataError(f"{path}: its question or its budget has an impossible number")
    place = path.parent.relative_to(plan.folder).as_posix()
    model = plan.source.value if place == "." else f"{plan.source}/{place}"
    model += decode.get("sample", "")
    settled, shown = settling_steps(decode["is_final"])
    row = {
        "model": model,
        "task": task.name,
        "family": str(task.family),
        "cohort": model,
        "trajectory": decode["number"],
        "pool": False,
        "stabilization": settled and settled / budget,
        "first_appearance": shown and shown / budget,
        "source": plan.source.value,
        "file": path.relative_to(plan.folder).as_posix(),
        "steps": steps,
        "budget": budget,
        "correct": read_verdict(path, decode.get("correct")),
        "answer": decode["answer"],
        "target": decode.get("target"),
        "commit_step": decode["commit_step"],
    }
    # Escape lone surrogates in texts and file names, which Parquet cannot store.
    return {
        name: value.encode(errors="backslashreplace").decode() if isinstance(value, str) else value
        for name, value in row.items()
    }


def settling_steps(is_final: Sequence[bool]) -> tuple[int | None, int | None]:
    """The step from which the final answer stays, and the step at which it first appears.

    Both are None if the last step does not have it.
    """
    if not is_final[-1]:
        return None, None
    last_other = max((step for step, same in enumerate(is_final, 1) if not same), default=0)
    return last_other + 1, list(is_final).index(True) + 1


def read_verdict(path: Path, given: object) -> bool | None:
    """Convert a verdict in a file (true, false, 1 or 0) to a bool; None if there is none."""
    if given is None:
        return None
    if isinstance(given, int | float) and given in (0, 1):
        return bool(given)
    raise DataError(f"{path}: says {shortened(repr(given))} where right or wrong should be")


class ImportedLibrary(Library):
    """Imported trajectories, for the table and the figure on when answers settle."""

    @cached_property
    def all_runs(self) -> list[Run]:
        return []

    @cached_property
    def settling(self) -> pl.DataFrame:
        """When answers settle. See `SETTLING`."""
        path = Path(self.root)
        try:
            frame = pl.read_parquet(path, hive_partitioning=False)
        except (OSError, pl.exceptions.PolarsError) as error:
            raise DataError(f"{path}: this Parquet file cannot be read ({error})") from error
        if frame.schema != IMPORTED:
            raise DataError(f"{path}: not a file of `c4 import`; its columns differ")
        frame = frame.select(SETTLING.names())
        asked = [self.wants(*row) for row in frame.select("model", "task").iter_rows()]
        return frame.filter(pl.Series(asked, dtype=pl.Boolean()))


def library_kind(place: Location, names: Sequence[str] | None) -> type[Library]:
    """Class that reads a location: `Library` for runs, or `ImportedLibrary` for its one report.

    Args:
        names: requested tables or figures; imported trajectories have only `SETTLES`.
    """
    is_file = isinstance(place, Path) and place.suffix == ".parquet" and place.is_file()
    return ImportedLibrary if is_file and names == [SETTLES] else Library


def summarise_imported(imported: pl.DataFrame) -> pl.DataFrame:
    """Per folder: number of decodes, accuracy, and progress by which 50% and 90% had settled."""
    grades = imported.group_by("model", maintain_order=True).agg(
        accuracy=pl.col("correct").mean(),
        steps=pl.col("steps").mean(),
        budget=pl.col("budget").max(),
    )
    settled = stabilization_summary(imported.select(SETTLING.names()))
    return settled.join(grades, on="model", how="left", maintain_order="left")
