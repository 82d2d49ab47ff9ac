"""Values that a run can hold, column by column; anything else is refused before it is used."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from c4.store.manifest import is_baseline
from c4.store.origins import Origin
from c4.store.schema import BENCH, GRADES, HIGHEST, ROWS
from c4.tasks import Ending, Shape, Verdict
from c4.tasks.graders import REGISTRY as GRADERS
from c4.tasks.reading.extractors import REGISTRY as EXTRACTORS

Array = npt.NDArray[Any]
MOST = 2**31 - 1
"""The highest number that int32 holds."""
MOST_STEPS = 2**15 - 1
"""The highest step that a cell can name."""
WORDS: Mapping[str, Callable[[str], bool]] = {
    "verdict": lambda word: word in list(Verdict),
    "style": EXTRACTORS.allows,
    "ending": lambda word: word in list(Ending),
    "grader": GRADERS.allows,
}
"""Columns that hold one of a few words, or what a user's own goes by; each tells which."""


def check_schema(found: pa.Schema, expected: pa.Schema) -> None:
    """Refuse other columns than the expected ones, in another order or of other types."""
    found = found.remove_metadata()
    if found.equals(expected):
        return
    missing = [name for name in expected.names if name not in found.names]
    extra = [name for name in found.names if name not in expected.names]
    other = [
        f"{field.name} as {field.type}{'' if field.nullable else ' not null'}"
        for field in found
        if field.name in expected.names and not field.equals(expected.field(field.name))
    ]
    kinds = {"missing": missing, "unknown": extra, "wrong": other}
    named = [f"{kind}: {', '.join(names)}" for kind, names in kinds.items() if names]
    raise ValueError(f"not the columns that c4 writes ({'; '.join(named) or 'out of order'})")


def check_nulls(table: pa.Table) -> None:
    """Refuse nulls where the schema has none; Arrow lets them pass."""
    for field in table.schema:
        if not field.nullable and table.column(field.name).null_count:
            raise ValueError(f"{field.name} has nulls")


def check_range(name: str, values: Array, low: float, high: float) -> None:
    """Refuse values outside a range, and what is no number."""
    if not len(values):
        return
    least, most = values.min(), values.max()
    if not (least >= low and most <= high):  # false of what is no number, too
        raise ValueError(f"{name} goes from {least:g} to {most:g}, not within {low:g} to {high:g}")


def check_words(name: str, column: pa.ChunkedArray) -> None:
    """Refuse what is none of the words that a column may hold."""
    words = set(column.unique().to_pylist()) - {None}
    unknown = {word for word in words if not WORDS[name](word)}
    if unknown:
        raise ValueError(f"{name} cannot be {min(unknown)!r}")


def check_cells(columns: Mapping[str, Array], vocab_size: int) -> None:
    """Refuse signals and tokens that no model gives."""
    check_range("token", columns["token"], 0, vocab_size - 1)
    for name, highest in HIGHEST.items():
        check_range(name, columns[name], 0, highest)


def check_cell_order(table: pa.Table, shapes: list[tuple[int, int, int]]) -> None:
    """Refuse cells that do not stand trajectory by trajectory, position by position."""
    expected = {
        "trajectory": [np.full(steps * length, number) for number, steps, length in shapes],
        "step": [np.tile(np.arange(1, steps + 1), length) for _, steps, length in shapes],
        "position": [np.repeat(np.arange(length), steps) for _, steps, length in shapes],
    }
    for name, values in expected.items():
        if not np.array_equal(table.column(name).to_numpy(), np.concatenate(values)):
            raise ValueError(f"its column {name} is not in order")


def check_rows(table: pa.Table, numbers: range, identity: Mapping[str, Any]) -> None:
    """Refuse rows that no decode of the run can have left."""
    check_schema(table.schema, ROWS)
    check_nulls(table)
    shape = Shape(**identity["shape"])
    column = {field.name: table.column(field.name) for field in ROWS}
    if not np.array_equal(column["trajectory"].to_numpy(), np.arange(numbers.start, numbers.stop)):
        raise ValueError(f"its rows are not trajectories {numbers.start} to {numbers.stop - 1}")
    most_steps = shape.budget if is_baseline(identity) else MOST_STEPS
    for name, low, high in (
        ("source_row", 0, MOST),
        ("length", shape.length, shape.length),
        ("budget", shape.budget, shape.budget),
        ("block_length", shape.block_length, shape.block_length),
        ("steps", 1, most_steps),
        ("tokens_before_end", 0, shape.length),
        ("wall_seconds", 0, np.finfo(np.float64).max),
        ("exit_step", 1, MOST_STEPS),
        ("revoked", 0, MOST),
    ):
        check_range(name, column[name].drop_null().to_numpy(), low, high)
    _check_lists(column, shape, identity["vocab_size"])
    for name in WORDS:
        check_words(name, column[name])


def _check_lists(column: Mapping[str, pa.ChunkedArray], shape: Shape, vocab_size: int) -> None:
    steps = column["steps"].to_numpy()
    lists = {
        "prompt_ids": (None, 0, vocab_size - 1),
        "final_ids": (shape.length, 0, vocab_size - 1),
        "committed_by": (shape.length, 0, max(Origin)),
        "commit_step": (shape.length, 1, MOST_STEPS),
        "block_steps": (shape.blocks, 0, MOST_STEPS),
        "block_seconds": (shape.blocks, 0, np.finfo(np.float64).max),
    }
    values = {name: _list_values(name, column[name], *limits) for name, limits in lists.items()}
    last_commit = values["commit_step"].reshape(len(steps), -1).max(axis=1)
    exit_step = column["exit_step"].fill_null(1).to_numpy()
    if (last_commit > steps).any() or (exit_step > steps).any():
        raise ValueError("a commit or an exit comes after the last step")
    if (values["block_steps"].reshape(len(steps), -1).sum(axis=1) != steps).any():
        raise ValueError("the steps of the blocks do not add up to the steps")


def _list_values(
    name: str, column: pa.ChunkedArray, count: int | None, low: float, high: float
) -> Array:
    """The values of a column of lists, end to end, each list of the right length."""
    array = column.combine_chunks()
    lengths = np.diff(array.offsets.to_numpy())
    if count is not None and (lengths != count).any():
        raise ValueError(f"{name} has {lengths[lengths != count][0]} values instead of {count}")
    flat = array.flatten()
    if flat.null_count:
        raise ValueError(f"{name} has nulls")
    values: Array = flat.to_numpy()
    check_range(name, values, low, high)
    return values


def check_grades(table: pa.Table) -> None:
    """Refuse grades that no grader gives."""
    check_schema(table.schema, GRADES)
    check_nulls(table)
    check_range("trajectory", table.column("trajectory").to_numpy(), 0, MOST)
    check_range("number", table.column("number").to_numpy(), 1, MOST)
    for name in WORDS:
        check_words(name, table.column(name))


def check_timing_values(table: pa.Table) -> None:
    """Refuse timings that no clock gives."""
    check_schema(table.schema, BENCH)
    check_nulls(table)
    for field in BENCH:
        if pa.types.is_integer(field.type):
            low = 0 if field.name == "warmups" else 1
            check_range(field.name, table.column(field.name).to_numpy(), low, MOST)
        elif pa.types.is_floating(field.type):
            values = table.column(field.name).drop_null().to_numpy()
            check_range(field.name, values, 0, np.finfo(np.float64).max)
