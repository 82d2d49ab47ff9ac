"""Rows: everything recorded about a decode except its cells."""

import json
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

import numpy as np
import pyarrow as pa

from c4.store.columns import MOST_STEPS, check_columns, check_range, table_schema
from c4.store.manifest import is_baseline
from c4.tasks import Example, Shape, Verdict


@dataclass(frozen=True, kw_only=True)
class Row:
    """One trajectory. Its fields are the columns of `ROWS`; see `c4.store.columns`."""

    trajectory: int
    source_row: int
    prompt: str
    prompt_ids: list[int]
    target: str
    preamble: str
    tests: str
    choices: list[str]
    final_ids: list[int]
    text: str
    answer: str | None
    verdict: str | None
    style: str | None
    ending: str | None
    grader: str | None
    length: int
    budget: int
    block_length: int
    steps: int
    tokens_before_end: int
    wall_seconds: float
    block_steps: list[int]
    block_seconds: list[float]
    exit_step: int | None
    committed_by: list[int]
    commit_step: list[int]
    revoked: int

    @property
    def example(self) -> Example:
        """The problem, in the form that graders take."""
        choices = tuple(self.choices)
        return Example(self.prompt, self.target, self.preamble, self.tests, choices)

    @property
    def correct(self) -> bool | None:
        """Whether the answer is right; None if ungraded or if grading failed on this machine."""
        return None if self.verdict is None else Verdict(self.verdict).correct

    @property
    def not_gradable(self) -> bool:
        """Whether the machine failed to grade the answer; `c4 grade` tries it again."""
        return self.verdict == Verdict.NOT_GRADABLE

    @property
    def never_graded(self) -> bool:
        """Whether the answer was never graded, under any reading."""
        return self.style is None

    @property
    def graded_otherwise(self) -> bool:
        """Whether the answer was graded, but not under the reading that the run is opened with."""
        return self.verdict is None and not self.never_graded

    @property
    def decode(self) -> dict[str, Any]:
        """The fields of the decode: all except the grade and the measured times."""
        return {name: value for name, value in asdict(self).items() if name not in NOT_DECODED}

    @property
    def decode_checksum(self) -> int:
        """CRC-32 of `decode`, by which two copies of a trajectory are compared."""
        return zlib.crc32(json.dumps(self.decode, sort_keys=True).encode())

    def to_json(self) -> bytes:
        return json.dumps(asdict(self)).encode()


GRADE = ("answer", "verdict", "style", "ending", "grader")
"""The columns of a grade: the answer, its verdict, and how the answer was read and compared."""
NOT_DECODED = (*GRADE, "wall_seconds", "block_seconds")
ROWS = table_schema([field.name for field in fields(Row)], nullable=(*GRADE, "exit_step"))
"""Schema of rows: one row per trajectory, for any method."""


def rows_to_table(rows: Sequence[Row]) -> pa.Table:
    return pa.Table.from_pylist([asdict(row) for row in rows], schema=ROWS)


def rows_from_table(table: pa.Table) -> list[Row]:
    return [Row(**row) for row in table.to_pylist()]


def table_from_json(data: bytes) -> pa.Table:
    """Build a table from a row stored as JSON."""
    fields = json.loads(data)
    if list(fields) != ROWS.names:
        raise ValueError("its row has other columns than c4 writes")
    return pa.Table.from_pylist([fields], schema=ROWS)


def check_rows(table: pa.Table, numbers: range, identity: Mapping[str, Any]) -> None:
    """Refuse rows that no decode of the run can have produced."""
    shape = Shape(**identity["shape"])
    most_steps = shape.budget if is_baseline(identity) else MOST_STEPS
    limits = {"L": shape.length, "N": shape.blocks, "S": most_steps}
    check_columns(table, ROWS, {**limits, "V": identity["vocab_size"] - 1})
    column = {name: table.column(name).combine_chunks() for name in ROWS.names}
    for name, size in asdict(shape).items():
        check_range(name, column[name].to_numpy(), size, size)
    if not np.array_equal(column["trajectory"].to_numpy(), np.arange(numbers.start, numbers.stop)):
        raise ValueError(f"its rows are not trajectories {numbers.start} to {numbers.stop - 1}")
    steps, each = column["steps"].to_numpy(), (len(numbers), -1)
    last_commit = column["commit_step"].flatten().to_numpy().reshape(each).max(axis=1)
    exit_step = column["exit_step"].fill_null(1).to_numpy()
    if (last_commit > steps).any() or (exit_step > steps).any():
        raise ValueError("a commit or an exit comes after the last step")
    if (column["block_steps"].flatten().to_numpy().reshape(each).sum(axis=1) != steps).any():
        raise ValueError("the steps of the blocks do not add up to the steps")
