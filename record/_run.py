"""Reading a recording back: trajectories one at a time, never more than a part in memory."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from c4.errors import RunError
from c4.record._cells import Cells, split_cells
from c4.record._format import (
    ROW_KEY,
    Manifest,
    Part,
    list_parts,
    open_part,
    read_manifest,
)
from c4.record._rows import TrajectoryRow
from c4.record._text import Vocabulary
from c4.tasks import Shape


@dataclass(frozen=True)
class Trajectory:
    """One recorded decode."""

    row: TrajectoryRow
    cells: Cells


class Run:
    """A recording of one model on one task. Iterating gives its trajectories in order."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.manifest: Manifest = read_manifest(folder)
        self._rows = {part.first: part for part in list_parts(folder / "trajectories")}
        self._cells = {part.first: part for part in list_parts(folder / "cells")}
        sealed = {i for part in self._rows.values() for i in part.trajectories}
        # A killed recording may have sealed a trajectory without removing its pending file.
        self._pending = [p for p in list_parts(folder / "pending") if p.first not in sealed]
        self.indices = sorted(sealed | {part.first for part in self._pending})

    def __len__(self) -> int:
        return len(self.indices)

    def __iter__(self) -> Iterator[Trajectory]:
        for first in sorted([*self._rows, *(part.first for part in self._pending)]):
            yield from self._read(first)

    def rows(self) -> Iterator[TrajectoryRow]:
        """The trajectories without their cells, with the newest grade of each."""
        for first in sorted([*self._rows, *(part.first for part in self._pending)]):
            yield from self._read_rows(first)

    def trajectory(self, index: int) -> Trajectory:
        """One trajectory by its number."""
        for part in [*self._rows.values(), *self._pending]:
            if index in part.trajectories:
                return next(t for t in self._read(part.first) if t.row.trajectory == index)
        raise RunError(f"{self.folder}: no trajectory {index}; there are {len(self)}")

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
        path = self.folder / "tokenizer.json"
        return Vocabulary(path.read_text(encoding="utf-8"), self.manifest.identity["end_ids"])

    def _read_rows(self, first: int) -> list[TrajectoryRow]:
        if first in self._rows:
            table = open_part(self._rows[first]).read()
            rows = [TrajectoryRow(**row) for row in table.to_pylist()]
        else:
            rows = [pending_row(open_part(self._pending_part(first)))]
        return [replace(row, **self._grades.get(row.trajectory, {})) for row in rows]

    def _read(self, first: int) -> Iterator[Trajectory]:
        rows = self._read_rows(first)
        if first in self._rows and first not in self._cells:
            raise RunError(
                f"{self._rows[first].path}: its cells are missing; delete it and record again "
                "to decode its trajectories anew"
            )
        part = self._cells[first] if first in self._rows else self._pending_part(first)
        shapes = [(row.forward_passes, row.length) for row in rows]
        for row, cells in zip(rows, split_cells(open_part(part), shapes), strict=True):
            yield Trajectory(row, cells)

    @cached_property
    def _grades(self) -> dict[int, dict[str, Any]]:
        """The newest grade of every trajectory that was graded after it was recorded."""
        parts = list_parts(self.folder / "grades")
        added = [row for part in parts for row in open_part(part).read().to_pylist()]
        return {
            row["trajectory"]: {"answer": row["answer"], "correct": row["correct"]}
            for row in sorted(added, key=lambda row: row["graded"])
        }

    def _pending_part(self, first: int) -> Part:
        return next(part for part in self._pending if part.first == first)


def pending_row(file: pq.ParquetFile) -> TrajectoryRow:
    """The trajectory row that a pending file carries beside its cells."""
    return TrajectoryRow.from_json(file.schema_arrow.metadata[ROW_KEY])


def open_run(path: str | Path) -> Run:
    """Open one recording, the folder that holds a manifest.json."""
    folder = Path(path)
    if not folder.is_dir():
        raise RunError(f"{folder}: no such folder")
    return Run(folder)


def find_runs(root: str | Path) -> list[Path]:
    """The folders of all recordings below a root, in order."""
    return sorted(manifest.parent for manifest in Path(root).rglob("manifest.json"))
