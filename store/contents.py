"""What the files of a run hold, checked against the run and against one another."""

import json
from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa

from c4.errors import RunError
from c4.store.cells import SHAPES_KEY, SIGNALS, Cells, batch_cells, signal_columns
from c4.store.columns import PartFile
from c4.store.manifest import Manifest
from c4.store.parts import COVERS_KEY, Part, Stamp, metadata_of, naming, open_part
from c4.store.rows import Row, rows_from_table, table_from_json
from c4.store.schema import CELLS
from c4.store.values import MOST_STEPS, check_cells, check_rows, check_schema

ROW_KEY = b"c4.trajectory"
"""Where a pending file keeps its row, so that one rename finishes row and cells."""
CELLS_KEY = b"c4.cells"
"""Where a part of rows names the part of cells that was sealed with it."""

Shapes = list[tuple[int, int, int]]
"""Number, steps and positions of every trajectory in a part."""


@dataclass(frozen=True)
class Contents:
    """An open part of a run. What it is asked for is checked first; errors name the part."""

    part: Part
    file: PartFile
    manifest: Manifest

    @classmethod
    def of(cls, part: Part, manifest: Manifest, *, whole: bool = False) -> "Contents":
        """Open a part, which must be the run's own; see `open_part`."""
        contents = cls(part, open_part(part, manifest.digest, whole=whole), manifest)
        with naming(part.path):
            contents._check_count()
        return contents

    def _check_count(self) -> None:
        """Refuse a part that does not hold as many trajectories as its name says, one of each."""
        *_, count = json.loads(self.metadata[COVERS_KEY])
        held = (
            len(self.shapes) if self.kind in ("cells", "pending") else self.file.metadata.num_rows
        )
        if not held == count == len(self.numbers):
            raise ValueError(f"it holds {held} trajectories, unlike its name")

    @property
    def kind(self) -> str:
        """Whether it holds rows, cells, or one pending trajectory with both."""
        return self.part.path.parent.name

    @cached_property
    def metadata(self) -> dict[bytes, bytes]:
        """What the part says of itself."""
        return metadata_of(self.file)

    @property
    def numbers(self) -> range:
        """The trajectories it holds."""
        return self.part.trajectories

    @property
    def stamp(self) -> Stamp:
        """What it says of its run, and how it was made."""
        with naming(self.part.path):
            return Stamp.read(self.metadata)

    @property
    def cells_name(self) -> str | None:
        """The name of the part of cells that belongs to this part of rows."""
        name = self.metadata.get(CELLS_KEY)
        return None if name is None else name.decode("utf-8", "replace")

    def rows(self) -> list[Row]:
        """The rows that it holds."""
        with naming(self.part.path):
            table = self._row_table()
            check_rows(table, self.numbers, self.manifest)
            return rows_from_table(table)

    def _row_table(self) -> pa.Table:
        if self.kind == "pending":
            return table_from_json(self.metadata[ROW_KEY])
        return self.file.read()

    @cached_property
    def shapes(self) -> Shapes:
        """Number, steps and positions of the trajectories whose cells it holds."""
        if self.kind == "pending":
            row = json.loads(self.metadata[ROW_KEY])
            found = [[row["trajectory"], row["steps"], row["length"]]]
        else:
            found = json.loads(self.metadata[SHAPES_KEY])
        shapes = [(_whole(n), _whole(steps), _whole(length)) for n, steps, length in found]
        self._check_shapes(shapes)
        return shapes

    def _check_shapes(self, shapes: Shapes) -> None:
        length = self.manifest.shape.length
        for number, (found, steps, positions) in enumerate(shapes, self.part.first):
            if found != number:
                raise ValueError(f"it holds trajectory {found} where {number} should be")
            if not 1 <= steps <= MOST_STEPS or positions != length:
                raise ValueError(f"trajectory {number} cannot have {steps} steps of {positions}")

    def batches(self) -> list[tuple[list[int], Cells]]:
        """Trajectories and their cells in batches of one shape: (n, steps, positions)."""
        with naming(self.part.path):
            return self._cut(self._cell_table(list(SIGNALS)))

    def _cell_table(self, columns: list[str] | None = None) -> pa.Table:
        check_schema(self.file.schema_arrow, CELLS)
        expected = sum(steps * length for _, steps, length in self.shapes)
        if self.file.metadata.num_rows != expected:
            found = self.file.metadata.num_rows
            raise ValueError(f"it has {found:,} cells instead of {expected:,}")
        return self.file.read(columns=columns)

    def _cut(self, table: pa.Table) -> list[tuple[list[int], Cells]]:
        columns = signal_columns(table)
        check_cells(columns, self.manifest.identity["vocab_size"])
        numbers = iter(self.numbers)
        batches = batch_cells(columns, [(steps, length) for _, steps, length in self.shapes])
        return [([next(numbers) for _ in batch.token], batch) for batch in batches]

    def cell_table(self) -> pa.Table:
        """All columns of the cells, as they are; empty where a pending file has none."""
        with naming(self.part.path):
            return self._cell_table() if self.has_cells else CELLS.empty_table()

    @property
    def has_cells(self) -> bool:
        """Whether it holds cells; a pending trajectory whose steps are not kept holds none."""
        return self.kind == "cells" or self.file.metadata.num_rows > 0


def _whole(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise ValueError(f"{value!r} is no whole number")
    return value


def missing_cells(rows: Part) -> RunError:
    """That the cells of a part of rows are gone, for readers and writers alike."""
    return RunError(
        f"{rows.path}: its cells are missing; bring them back, or delete that file of rows too and "
        "record again"
    )


def require_own_cells(rows: Contents, cells: Part) -> None:
    """Refuse cells that were not sealed with these rows."""
    if rows.cells_name != cells.path.name:
        open_part(cells, rows.manifest.digest)  # of another run: then that is what to say
        raise RunError(
            f"{cells.path}: not the cells that were sealed with {rows.part.path.name}, which names "
            f"{rows.cells_name or 'none'}; bring those back, or delete both files and record again"
        )
