"""Cells of trajectories: arrays in memory, a Parquet table on disk, and conversions."""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from c4.store.arrays import BoolArray, FloatArray, TokenArray
from c4.store.columns import HIGHEST, RESOLUTION, check_range, table_schema

CELLS_PER_PART = 2**18
"""Maximum number of cells in a part: small files waste headers, large ones memory."""


@dataclass(frozen=True)
class Cells:
    """Predictions of every step at every position. Arrays are (steps, positions).

    Trajectories of one shape may be stacked: (n, steps, positions).
    """

    token: TokenArray
    confidence: FloatArray
    gap: FloatArray
    entropy: FloatArray
    masked: BoolArray

    @property
    def shape(self) -> tuple[int, int]:
        """The numbers of steps and of positions."""
        steps, positions = self.token.shape[-2:]
        return steps, positions

    def __getitem__(self, index: Any) -> "Cells":
        """Index every array alike."""
        return Cells(*(getattr(self, name)[index] for name in SIGNALS))

    def as_decoded(self) -> "Cells":
        """Return the same cells in a decode's memory layout, so that sums agree exactly."""
        return Cells(*(np.ascontiguousarray(getattr(self, name)) for name in SIGNALS))


SIGNALS = tuple(field.name for field in fields(Cells))
CELLS = table_schema(["trajectory", "step", "position", *SIGNALS])
"""Sorted by trajectory, then position, then step: a position's history compresses best."""


def cells_to_table(trajectory: int, cells: Cells | None) -> pa.Table:
    """Build a table of one row per cell, position by position; empty if `cells` is None."""
    if cells is None:
        return CELLS.empty_table()
    steps, positions = cells.shape
    columns = {
        "trajectory": np.full(steps * positions, trajectory, dtype=np.int32),
        "step": np.tile(np.arange(1, steps + 1, dtype=np.int16), positions),
        "position": np.repeat(np.arange(positions, dtype=np.int16), steps),
    }
    columns |= {name: getattr(cells, name).T.ravel() for name in SIGNALS}
    return pa.table(columns, schema=CELLS)


def batch_cells(
    columns: Mapping[str, npt.NDArray[Any]], shapes: Sequence[tuple[int, int]]
) -> list[Cells]:
    """Split the cells of a part into batches of one shape, arrays of (n, steps, positions).

    Args:
        columns: the signals of the whole part; the arrays are views of them.
        shapes: steps and positions of every trajectory in the part.
    """
    batches, start = [], 0
    for (steps, positions), group in itertools.groupby(shapes):
        count = len(list(group))
        stop = start + count * steps * positions
        # Stored position by position; the transpose is a view.
        arrays = {
            name: column[start:stop].reshape(count, positions, steps).transpose(0, 2, 1)
            for name, column in columns.items()
        }
        batches.append(Cells(**arrays))
        start = stop
    return batches


def signal_columns(table: pa.Table) -> dict[str, npt.NDArray[Any]]:
    """Return the signals of a table of cells; only the booleans, which Arrow packs, are copied."""
    return {name: _to_numpy(table.column(name)) for name in SIGNALS}


def _to_numpy(column: pa.ChunkedArray) -> npt.NDArray[Any]:
    array = column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
    if not pa.types.is_boolean(array.type):
        values: npt.NDArray[Any] = array.to_numpy(zero_copy_only=True)
        return values
    # Arrow packs booleans into bits; NumPy unpacks them ten times faster than Arrow.
    packed, stop = np.frombuffer(array.buffers()[1], np.uint8), array.offset + len(array)
    return np.unpackbits(packed, count=stop, bitorder="little")[array.offset :].view(np.bool_)


def check_cells(columns: Mapping[str, npt.NDArray[Any]], vocab_size: int) -> None:
    """Refuse signals and tokens that no model can produce."""
    check_range("token", columns["token"], 0, vocab_size - 1)
    for name in RESOLUTION:
        check_range(name, columns[name], 0, HIGHEST[name])


def check_cell_order(table: pa.Table, shapes: list[tuple[int, int, int]]) -> None:
    """Refuse cells that are not ordered by trajectory, position and step."""
    expected = {
        "trajectory": [np.full(steps * length, number) for number, steps, length in shapes],
        "step": [np.tile(np.arange(1, steps + 1), length) for _, steps, length in shapes],
        "position": [np.repeat(np.arange(length), steps) for _, steps, length in shapes],
    }
    for name, values in expected.items():
        if not np.array_equal(table.column(name).to_numpy(), np.concatenate(values)):
            raise ValueError(f"its column {name} is not in order")
