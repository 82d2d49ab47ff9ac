"""Reading a run back: rows, and where they are kept cells, never more than a part in memory."""

import json
import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from c4.errors import RunError
from c4.store.cells import SHAPES_KEY, Cells, batch_cells
from c4.store.grades import GRADE, Grades
from c4.store.labels import is_baseline, label_under
from c4.store.manifest import Manifest, read_manifest, read_tokenizer
from c4.store.parts import Part, list_parts, open_part
from c4.store.rows import Row
from c4.store.schema import ROWS
from c4.store.vocabulary import Vocabulary
from c4.tasks import AnswerReading, Shape

log = logging.getLogger(__name__)

ROW_KEY = b"c4.trajectory"
"""Where a pending file keeps its row, so that one rename finishes row and cells."""


@dataclass(frozen=True)
class Trajectory:
    """One decode with every step."""

    row: Row
    cells: Cells


@dataclass(frozen=True)
class RunPart:
    """Trajectories of a run: sealed into files of rows and of cells, or a single pending one."""

    rows: Part
    """The file of rows; a pending file holds its row beside its cells."""
    cells: Part | None
    """The file of cells; None where they are not kept."""
    is_pending: bool = False

    @property
    def trajectories(self) -> range:
        return self.rows.trajectories


class Run:
    """A model, a task and a method. Iterating gives its trajectories in order, with their cells.

    A run is opened under a reading, which decides signals, texts and grades, and nothing that was
    decoded.
    """

    def __init__(self, folder: Path, reading: AnswerReading | None = None) -> None:
        self.folder = folder
        self.reading = reading or AnswerReading()
        self.manifest: Manifest = read_manifest(folder)
        self.parts = _find_parts(folder, has_cells=self.has_cells)
        self.indices = [index for part in self.parts for index in part.trajectories]

    def __repr__(self) -> str:
        graded = [row.correct for row in self.rows() if row.correct is not None]
        accuracy = f", accuracy {sum(graded) / len(graded):.1%}" if graded else ""
        return f"<Run {self.model} {self.task} {self.method}, n={len(self)}{accuracy}>"

    @property
    def task(self) -> str:
        return str(self.manifest.identity["task"])

    @property
    def model(self) -> str:
        return str(self.manifest.identity["model"])

    @property
    def method(self) -> str:
        """The method's label, which says how its gate reads only if that is not the reading."""
        return label_under(self.manifest.identity, self.reading)

    @property
    def is_baseline(self) -> bool:
        """Whether it is the full decode that others are compared with, whatever its label."""
        return is_baseline(self.manifest.identity)

    @property
    def has_cells(self) -> bool:
        """Whether every step was kept."""
        return bool(self.manifest.identity["cells"])

    @property
    def shape(self) -> Shape:
        return Shape(**self.manifest.identity["shape"])

    @cached_property
    def vocabulary(self) -> Vocabulary:
        """What the run's token ids mean."""
        tokenizer = read_tokenizer(self.folder, self.manifest)
        return Vocabulary(tokenizer, self.manifest.identity["end_ids"])

    @cached_property
    def _grades(self) -> Grades:
        return Grades(self.folder, self.manifest.digest, self.reading)

    def text(self, ids: Sequence[int]) -> str:
        """What tokens say under the run's reading."""
        return self.vocabulary.text(ids, self.reading.ending)

    def __len__(self) -> int:
        return len(self.indices)

    def __iter__(self) -> Iterator[Trajectory]:
        for part in self.parts:
            yield from self.read(part)

    def rows(self) -> Iterator[Row]:
        """The trajectories without their cells, each with its grade under the run's reading."""
        for part in self.parts:
            yield from self.read_rows(part)

    def cells(self) -> Iterator[tuple[int, Cells]]:
        """Every trajectory's number and cells; the fastest way through a run."""
        for part in self.parts:
            yield from self.read_cells(part)

    def trajectory(self, index: int) -> Trajectory:
        """One trajectory by its number."""
        for part in self.parts:
            if index in part.trajectories:
                return next(t for t in self.read(part) if t.row.trajectory == index)
        raise RunError(f"{self.folder}: no trajectory {index}; there are {len(self)}")

    def read(self, part: RunPart) -> Iterator[Trajectory]:
        """The trajectories of one part."""
        rows = self.read_rows(part)
        for row, (_, cells) in zip(rows, self.read_cells(part), strict=True):
            yield Trajectory(row, cells)

    def read_cells(self, part: RunPart) -> Iterator[tuple[int, Cells]]:
        """The trajectories' numbers and cells of one part, without their rows' text."""
        for numbers, batch in self.read_batches(part):
            for i, number in enumerate(numbers):
                yield number, batch[i]

    def read_batches(self, part: RunPart) -> Iterator[tuple[list[int], Cells]]:
        """The same in batches of one shape, cells stacked: (n, steps, positions)."""
        if part.cells is None:
            raise RunError(
                f"{self.folder}: only results are kept here; decode with every step by: "
                f"c4 run --cells --task {self.task} --method NAME --fresh"
            )
        try:
            file = open_part(part.cells, self.manifest.digest)
        except FileNotFoundError:
            found = self._sealed_since(part).trajectory(part.rows.first)
            yield [found.row.trajectory], found.cells[None]
            return
        shapes = cell_shapes(file)
        start = 0
        for batch in batch_cells(file, [(steps, length) for _, steps, length in shapes]):
            stop = start + len(batch.token)
            yield [number for number, _, _ in shapes[start:stop]], batch
            start = stop

    def read_rows(self, part: RunPart) -> list[Row]:
        """The rows of one part."""
        try:
            file = open_part(part.rows, self.manifest.digest)
        except FileNotFoundError:
            now = self._sealed_since(part)
            return [row for row in now.rows() if row.trajectory in part.trajectories]
        rows = [pending_row(file)] if part.is_pending else sealed_rows(part.rows, file)
        return [replace(row, **self._grade(row)) for row in rows]

    def _grade(self, row: Row) -> dict[str, Any]:
        return self._grades.of(row.trajectory, {name: getattr(row, name) for name in GRADE})

    def _sealed_since(self, part: RunPart) -> "Run":
        """The run as it is now, where a writer has sealed a pending file away meanwhile."""
        now = Run(self.folder, self.reading)
        if not part.is_pending or part in now.parts:
            raise RunError(f"{part.rows.path}: gone while it was being read")
        return now


def _find_parts(folder: Path, *, has_cells: bool) -> list[RunPart]:
    # In the reverse of the order in which a writer seals them: what is sealed while this looks is
    # found at least once.
    pending = list_parts(folder / "pending")
    rows = list_parts(folder / "rows")
    cells = {part.first: part for part in list_parts(folder / "cells")} if has_cells else {}
    for part in rows:
        if has_cells and part.first not in cells:
            raise RunError(
                f"{part.path}: its cells are missing; delete it and record again to decode its "
                "trajectories anew"
            )
    sealed = {index for part in rows for index in part.trajectories}
    found = {part.first: RunPart(part, cells.get(part.first)) for part in rows}
    # A killed writer may have sealed a trajectory without removing its pending file.
    for part in pending:
        if part.first not in sealed:
            found[part.first] = RunPart(part, part if has_cells else None, is_pending=True)
    return [found[first] for first in sorted(found)]


def sealed_rows(part: Part, file: pq.ParquetFile) -> list[Row]:
    """The rows of a sealed part."""
    if file.schema_arrow.names != ROWS.names:
        raise RunError(f"{part.path}: columns of another c4; decode again with --fresh")
    return [Row(**row) for row in file.read().to_pylist()]


def pending_row(file: pq.ParquetFile) -> Row:
    """The row that a pending file carries beside its cells."""
    return Row.from_json(file.schema_arrow.metadata[ROW_KEY])


def cell_shapes(file: pq.ParquetFile) -> list[tuple[int, int, int]]:
    """Number, steps and positions of the trajectories whose cells a file holds."""
    metadata = file.schema_arrow.metadata or {}
    if SHAPES_KEY in metadata:
        return [(n, steps, length) for n, steps, length in json.loads(metadata[SHAPES_KEY])]
    row = pending_row(file)
    return [(row.trajectory, row.steps, row.length)]


def open_run(path: str | Path, reading: AnswerReading | None = None) -> Run:
    """Open one run, the folder that holds a manifest.json, to be read in one way."""
    folder = Path(path)
    if not folder.is_dir():
        raise RunError(f"{folder}: no such folder")
    return Run(folder, reading)


def find_runs(root: str | Path) -> list[Path]:
    """The folders of all runs below a root, in order; or the root, if it is one itself."""
    root = Path(root)
    if (root / "manifest.json").exists():
        return [root]
    return sorted(path.parent for path in root.glob("**/method=*/manifest.json"))


def find_recordings(root: str | Path, reading: AnswerReading | None = None) -> list[Run]:
    """The recorded full decodes below a root; or the run at the root, whatever its method.

    Nobody who asks for full decodes gets a sampler's steps, unless the run itself is named.
    """
    folders = find_runs(root)
    if folders == [Path(root)]:
        return [open_run(root, reading)]
    return [run for run in readable_runs(folders, reading) if run.is_baseline and run.has_cells]


def readable_runs(folders: Sequence[Path], reading: AnswerReading | None = None) -> list[Run]:
    """The runs that can be opened; what cannot is said, and harms no other."""
    runs = []
    for folder in folders:
        try:
            runs.append(open_run(folder, reading))
        except RunError as error:
            log.warning("passed over: %s", error)
    return runs
