"""Every column on disk, defined once: its type, range, unit and meaning.

The table schemas (`ROWS`, `CELLS`, `GRADES` and `BENCH`, each in the module that reads it), the
checks of tables that are read and the card of a data set are derived from these definitions.
"""

import sys
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from c4.store.origins import Origin
from c4.tasks import Ending, Verdict
from c4.tasks.graders import REGISTRY as GRADERS
from c4.tasks.reading.extractors import REGISTRY as EXTRACTORS

MOST_STEPS = 2**15 - 1
"""The highest step number that a cell can hold."""


@dataclass(frozen=True)
class Column:
    """A column of a table.

    Bounds that depend on the run are letters: L positions, N blocks, S maximum steps, and V, the
    highest token id of the vocabulary.
    """

    type: pa.DataType
    meaning: str
    low: float = 0
    """The lowest allowed number."""
    high: float | str = sys.float_info.max
    """The highest allowed number."""
    count: str | None = None
    """Length of each list, if fixed."""
    words: Callable[[str], bool] | None = None
    """Predicate for allowed words; None allows any text."""
    resolution: float | None = None
    """Unit to which values are rounded once, when they are computed.

    Fixed point compresses to half the size of raw float32. Recorder and gates see the rounded
    values, so they agree exactly; commit rules see the raw ones, so rounding changes no decode.
    """


BYTE, SHORT, INT, FLOAT = pa.uint8(), pa.int16(), pa.int32(), pa.float32()
SECONDS, TEXT, INTS = pa.float64(), pa.string(), pa.list_(pa.int32())

COLUMNS = {
    "trajectory": Column(INT, "number of the example, its place in the shuffled split"),
    "source_row": Column(INT, "place of the example in the source, before the shuffle"),
    "prompt": Column(TEXT, "what the model was asked"),
    "prompt_ids": Column(INTS, "the prompt as the model got it", 0, "V"),
    "target": Column(TEXT, "the gold answer"),
    "preamble": Column(TEXT, "what is run before a program, for tasks of code"),
    "tests": Column(TEXT, "what a program must pass, for tasks of code"),
    "choices": Column(
        pa.list_(TEXT), "texts offered, in the order of their letters, for tasks with letters"
    ),
    "final_ids": Column(INTS, "what was generated, one token per position", 0, "V", "L"),
    "text": Column(TEXT, "the generated text up to the first end token"),
    "answer": Column(TEXT, "the answer found in the text, or null"),
    "verdict": Column(
        TEXT,
        "right, wrong, no answer, timed out, crashed or not gradable",
        words=lambda word: word in list(Verdict),
    ),
    "style": Column(TEXT, "how the answer was read", words=EXTRACTORS.allows),
    "ending": Column(
        TEXT,
        "where the text was taken to end when the answer was read",
        words=lambda word: word in list(Ending),
    ),
    "grader": Column(TEXT, "who compared the answer with the target", words=GRADERS.allows),
    "length": Column(INT, "generated positions, L", 1),
    "budget": Column(INT, "steps of a full decode, T", 1),
    "block_length": Column(INT, "positions per block, B", 1),
    "steps": Column(INT, "forward passes spent", 1, "S"),
    "tokens_before_end": Column(
        INT, "how many of final_ids come before the first end token", 0, "L"
    ),
    "wall_seconds": Column(SECONDS, "seconds that the decode took"),
    "block_steps": Column(
        INTS, "steps spent in each block, 0 if it was never reached", 0, MOST_STEPS, "N"
    ),
    "block_seconds": Column(pa.list_(SECONDS), "seconds spent in each block", count="N"),
    "exit_step": Column(INT, "step at which a gate stopped the decode, or null", 1, MOST_STEPS),
    "committed_by": Column(
        pa.list_(BYTE),
        "why each position was committed, "
        "as 0 schedule, 1 core, 2 confirmed, 3 accepted, 4 filled at the exit",
        0,
        max(Origin),
        "L",
    ),
    "commit_step": Column(
        INTS,
        "step at which each position got its token of final_ids, from 1",
        1,
        MOST_STEPS,
        "L",
    ),
    "revoked": Column(INT, "commits that were taken back"),
    "step": Column(SHORT, "1 to T, and the row describes the text as the step began", 1),
    "position": Column(SHORT, "0 to L - 1, the prompt not counted"),
    "token": Column(INT, "the likeliest token, whether the position was masked or not", 0, "V"),
    "confidence": Column(
        FLOAT, "softmax probability of that token at temperature 1", 0, 1.0, resolution=2.0**-14
    ),
    # Clipped at 2**16, far beyond any threshold, because float32 holds no more units exactly.
    "gap": Column(
        FLOAT, "its logit minus that of the second likeliest token", 0, 2.0**16, resolution=2.0**-8
    ),
    # The maximum, log of the vocabulary size, is below 22 for all tokens that int32 can number.
    "entropy": Column(FLOAT, "of the whole softmax, in nats", 0, 22.0, resolution=2.0**-10),
    "masked": Column(pa.bool_(), "whether the position was masked when the step began"),
    "version": Column(TEXT, "version of c4 that graded"),
    "number": Column(
        INT, "counts up, and of several grades the one with the highest number counts", 1
    ),
    "method": Column(TEXT, "label of the method"),
    "settings": Column(TEXT, "JSON: rule and gate, with every parameter"),
    "identity": Column(TEXT, "JSON: the identity that a run of the method would have"),
    "n": Column(INT, "examples timed", 1),
    "passes": Column(INT, "passes over the examples", 1),
    "warmups": Column(INT, "examples decoded first, whose time does not count"),
    "device": Column(TEXT, "device of the model"),
    "threads": Column(INT, "threads of a decode on the processor", 1),
    "mean_seconds": Column(SECONDS, "seconds per example, mean of the means of the passes"),
    "cv": Column(SECONDS, "variation of the means of the passes, in percent"),
    "tps": Column(SECONDS, "tokens per second: L over mean_seconds"),
    "tps_before_end": Column(SECONDS, "the same for the tokens before the first end token"),
    "tokens_per_forward": Column(SECONDS, "L over mean_steps"),
    "mean_steps": Column(SECONDS, "forward passes per example"),
    "speedup": Column(SECONDS, "over the baseline of the same call, or null"),
    "step_ratio": Column(SECONDS, "forward passes of the baseline over these, or null"),
}
"""The columns by name; a name means the same in every table."""
RESOLUTION = {name: column.resolution for name, column in COLUMNS.items() if column.resolution}
"""The unit to which each signal is rounded."""
HIGHEST = {name: float(COLUMNS[name].high) for name in RESOLUTION}
"""The highest value of each signal; the lowest is 0."""


Array = npt.NDArray[Any]
NO_LIMITS: Mapping[str, float] = {}


def table_schema(names: Iterable[str], nullable: Collection[str] = ()) -> pa.Schema:
    """Build the schema of a table from the names of its columns."""
    return pa.schema(
        [pa.field(name, COLUMNS[name].type, nullable=name in nullable) for name in names]
    )


def check_schema(found: pa.Schema, expected: pa.Schema) -> None:
    """Refuse a schema whose columns, types or order differ from the expected ones."""
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


def check_range(name: str, values: Array, low: float, high: float) -> None:
    """Refuse values outside a range, and NaN."""
    if not len(values):
        return
    least, most = values.min(), values.max()
    if not (least >= low and most <= high):  # written so that NaN fails, too
        raise ValueError(f"{name} goes from {least:g} to {most:g}, not within {low:g} to {high:g}")


def check_columns(
    table: pa.Table, schema: pa.Schema, limits: Mapping[str, float] = NO_LIMITS
) -> None:
    """Refuse a table with values that `COLUMNS` does not allow.

    Args:
        limits: values of the bounds that are letters in `COLUMNS`.
    """
    check_schema(table.schema, schema)
    for field in schema:
        name, column, values = field.name, COLUMNS[field.name], table.column(field.name)
        if not field.nullable and values.null_count:  # Arrow does not check this
            raise ValueError(f"{name} has nulls")
        if column.words is not None:
            found = set(values.unique().to_pylist()) - {None}
            unknown = {word for word in found if not column.words(word)}
            if unknown:
                raise ValueError(f"{name} cannot be {min(unknown)!r}")
        if pa.types.is_list(field.type):
            values = _list_values(name, values, limits)
        if pa.types.is_integer(values.type) or pa.types.is_floating(values.type):
            high = limits[column.high] if isinstance(column.high, str) else column.high
            check_range(name, values.drop_null().to_numpy(), column.low, high)


def _list_values(name: str, column: pa.ChunkedArray, limits: Mapping[str, float]) -> pa.Array:
    """Return the concatenated values of a column of lists, after checking each list's length."""
    array, letter = column.combine_chunks(), COLUMNS[name].count
    lengths = np.diff(array.offsets.to_numpy())
    if letter is not None and (lengths != limits[letter]).any():
        wrong = lengths[lengths != limits[letter]][0]
        raise ValueError(f"{name} has {wrong} values instead of {limits[letter]}")
    flat = array.flatten()
    if flat.null_count:
        raise ValueError(f"{name} has nulls")
    return flat
