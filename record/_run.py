"""Reading a recording back: trajectories one at a time, never more than a part in memory."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import pyarrow.parquet as pq

from c4.errors import RunError
from c4.record._cells import Cells, batch_cells
from c4.record._format import (
    ROW_KEY,
    SHAPES_KEY,
    Manifest,
    Part,
    list_parts,
    open_part,
    read_manifest,
    read_tokenizer,
)
from c4.record._grades import GRADE, Grades
from c4.record._methods import label_under
from c4.record._rows import TrajectoryRow
from c4.record._text import Vocabulary
from c4.tasks import AnswerReading, Shape

LIVE_PATTERN = "**/method=*/manifest.json"
"""Where live runs lie below a root, be it above their `live` folder or inside."""


@dataclass(frozen=True)
class Trajectory:
    """One recorded decode."""

    row: TrajectoryRow
    cells: Cells


@dataclass(frozen=True)
class RunPart:
    """A file of cells, and the file of its trajectories' rows."""

    cells: Part
    rows: Part | None
    """None while the trajectory is pending: its row is in the cells' file."""


class OpenRun:
    """What recordings and live runs share: a manifest, a vocabulary, grades.

    A run is opened under a reading, which decides signals, texts and grades, and nothing that
    was recorded.
    """

    def __init__(self, folder: Path, reading: AnswerReading | None = None) -> None:
        self.folder = folder
        self.reading = reading or AnswerReading()
        self.manifest: Manifest = read_manifest(folder)

    @property
    def task(self) -> str:
        return str(self.manifest.identity["task"])

    @property
    def model(self) -> str:
        return str(self.manifest.identity["model"])

    @property
    def shape(self) -> Shape:
        return Shape(**self.manifest.identity["shape"])

    @cached_property
    def vocabulary(self) -> Vocabulary:
        """What the run's token ids mean."""
        tokenizer = read_tokenizer(self.folder, self.manifest)
        return Vocabulary(tokenizer, self.manifest.identity["end_ids"])

    def text(self, ids: Sequence[int]) -> str:
        """What tokens say under the run's reading."""
        return self.vocabulary.text(ids, self.reading.ending)

    @cached_property
    def _grades(self) -> Grades:
        return Grades(self.folder, self.reading)


class Run(OpenRun):
    """A recording of one model on one task. Iterating gives its trajectories in order."""

    def __init__(self, folder: Path, reading: AnswerReading | None = None) -> None:
        super().__init__(folder, reading)
        self.parts = _find_parts(folder)
        self.indices = [index for part in self.parts for index in part.cells.trajectories]

    def __len__(self) -> int:
        return len(self.indices)

    def __iter__(self) -> Iterator[Trajectory]:
        for part in self.parts:
            yield from self.read(part)

    def cells(self) -> Iterator[tuple[int, Cells]]:
        """Every trajectory's number and cells; the fastest way through a run."""
        for part in self.parts:
            yield from self.read_cells(part)

    def rows(self) -> Iterator[TrajectoryRow]:
        """The trajectories without their cells, each with its grade under the run's reading."""
        for part in self.parts:
            yield from self.read_rows(part)

    def trajectory(self, index: int) -> Trajectory:
        """One trajectory by its number."""
        for part in self.parts:
            if index in part.cells.trajectories:
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
        try:
            file = open_part(part.cells)
        except FileNotFoundError:
            found = self._sealed_since(part).trajectory(part.cells.first)
            yield [found.row.trajectory], found.cells[None]
            return
        shapes = cell_shapes(file)
        start = 0
        for batch in batch_cells(file, [(steps, length) for _, steps, length in shapes]):
            stop = start + len(batch.token)
            yield [number for number, _, _ in shapes[start:stop]], batch
            start = stop

    def read_rows(self, part: RunPart) -> list[TrajectoryRow]:
        """The rows of one part."""
        try:
            if part.rows is None:
                rows = [pending_row(open_part(part.cells))]
            else:
                rows = [TrajectoryRow(**row) for row in open_part(part.rows).read().to_pylist()]
        except FileNotFoundError:
            return [self._sealed_since(part).trajectory(part.cells.first).row]
        return [self._graded(row) for row in rows]

    def _graded(self, row: TrajectoryRow) -> TrajectoryRow:
        own = {name: getattr(row, name) for name in GRADE}
        return replace(row, **self._grades.of(row.trajectory, own))

    def _sealed_since(self, part: RunPart) -> "Run":
        """The run as it is now, where a recording has sealed a pending file away meanwhile."""
        now = Run(self.folder, self.reading)
        if part.rows is not None or part in now.parts:
            raise RunError(f"{part.cells.path}: gone while it was being read")
        return now

    @property
    def method(self) -> str:
        """The label of the live method whose steps these are; `baseline` of a full decode."""
        identity = self.manifest.identity
        return label_under(identity, self.reading) if "method" in identity else "baseline"


def _find_parts(folder: Path) -> list[RunPart]:
    # In the reverse of the order in which a recording writes them: what is sealed while this
    # looks is found at least once.
    pending = list_parts(folder / "pending")
    rows = list_parts(folder / "trajectories")
    cells = {part.first: part for part in list_parts(folder / "cells")}
    for part in rows:
        if part.first not in cells:
            raise RunError(
                f"{part.path}: its cells are missing; delete it and record again to decode its "
                "trajectories anew"
            )
    sealed = {index for part in rows for index in part.trajectories}
    found = {part.first: RunPart(cells[part.first], part) for part in rows}
    # A killed recording may have sealed a trajectory without removing its pending file.
    found |= {part.first: RunPart(part, None) for part in pending if part.first not in sealed}
    return [found[first] for first in sorted(found)]


def cell_shapes(file: pq.ParquetFile) -> list[tuple[int, int, int]]:
    """Number, steps and positions of the trajectories whose cells a file holds."""
    metadata = file.schema_arrow.metadata or {}
    if SHAPES_KEY in metadata:
        return [(n, steps, length) for n, steps, length in json.loads(metadata[SHAPES_KEY])]
    if ROW_KEY not in metadata:
        raise RunError("the cells do not say their shapes: made before c4 0.1, record them again")
    row = pending_row(file)
    return [(row.trajectory, row.forward_passes, row.length)]


def pending_row(file: pq.ParquetFile) -> TrajectoryRow:
    """The trajectory row that a pending file carries beside its cells."""
    return TrajectoryRow.from_json(file.schema_arrow.metadata[ROW_KEY])


def open_run(path: str | Path, reading: AnswerReading | None = None) -> Run:
    """Open one recording, the folder that holds a manifest.json, to be read in one way."""
    folder = Path(path)
    if not folder.is_dir():
        raise RunError(f"{folder}: no such folder")
    run = Run(folder, reading)
    if not run.manifest.identity.get("recorded", True):
        raise RunError(f"{folder}: results of a live run without its cells; run it with --record")
    return run


def find_runs(root: str | Path) -> list[Path]:
    """The folders of all recordings below a root, in order; or the root, if it is one itself.

    Recorded live runs are among them only where the root lies inside their `live` folder: nobody
    who asks for full decodes shall get a sampler's steps.
    """
    root = Path(root)
    if (root / "manifest.json").exists():
        return [root]
    full = root.glob("**/task=*/manifest.json")
    live = (path for path in root.glob(LIVE_PATTERN) if "live" not in path.relative_to(root).parts)
    recorded = (path for path in live if read_manifest(path.parent).identity["recorded"])
    return sorted(path.parent for path in (*full, *recorded))
