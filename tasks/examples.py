"""Examples of a task, from the hub, from a local file, or from the embedded generators."""

import hashlib
import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from c4.errors import RAISED, C4Error, DataError, did_you_mean, failure, naming_failures, shortened
from c4.errors.system import exists, reason, require_plain_file, user_path
from c4.tasks import problems
from c4.tasks.problems import EMBEDDED_TASKS, EVALUATION, problem
from c4.tasks.sandbox.entry_points import names_of_tests
from c4.tasks.task import Example, Family, HubSplit, Row, Task

EMBEDDED_SOURCE = "embedded"
HUB_SOURCE = "hub"
TASK_SOURCE = "task"
"""Name of the source whose rows a user's task supplies."""
ORDER = "numpy.random.default_rng(seed).permutation"
"""How a split is shuffled; part of a run's identity, as trajectory numbers refer to this order."""


@dataclass(frozen=True)
class Sample:
    """An example and its place: in the shuffled split, and in the source."""

    index: int
    """Position among the usable rows of the shuffled split; the trajectory number in recordings."""
    source_row: int
    example: Example


@dataclass(frozen=True)
class SampleSet:
    """The requested examples, and where they came from."""

    samples: Sequence[Sample]
    origin: str
    """Exact name of the source: with a hash for a file, a fingerprint for the hub."""
    usable: int
    left_out: int
    """Rows of the source that the task cannot use."""


class EmbeddedRows:
    """The evaluation problems of a task, each generated on access."""

    def __init__(self, task: str) -> None:
        self.task = task

    def __len__(self) -> int:
        return EVALUATION

    def __getitem__(self, index: int) -> Row:
        return problem(self.task, index).row


def default_source(task: Task, *, embedded: bool) -> str:
    """Where a task's examples come from by default.

    Args:
        embedded: whether the model is the embedded one, which knows only embedded problems.
    """
    if task.rows is not None:
        return TASK_SOURCE
    return EMBEDDED_SOURCE if embedded and task.is_own else HUB_SOURCE


def examples_set_aside(task: Task, source: str) -> int:
    """Number of examples kept for calibration; none in a user's file for a built-in task.

    Args:
        source: as a user gives it, or as a run's identity stores it.
    """
    own_split = source in (EMBEDDED_SOURCE, HUB_SOURCE)
    return task.skip if own_split or not task.is_own else 0


def load_samples(
    task: Task, source: str, *, seed: int = 0, skip: int | None = None, n: int | None = None
) -> SampleSet:
    """Shuffle the split with the seed, drop unusable rows, and return `n` examples after `skip`.

    The whole split is shuffled as `datasets` does it, so a protocol that shuffles with that library
    selects the same examples.

    Args:
        source: `embedded`, `hub`, a .jsonl or .parquet file with the hub's fields, or a local
            copy of the hub's folder; `task` for rows that the task supplies.
        skip: number of examples to pass over; if None, `examples_set_aside`.
        n: number of examples; if None, the task's number or as many as there are.
    """
    skip = examples_set_aside(task, source) if skip is None else skip
    rows, origin = _open(task, source)
    order = shuffled(len(rows), seed)
    if source == EMBEDDED_SOURCE:  # all rows are usable, and generated when needed
        examples = {}
    else:
        read = ((row, _read(task, rows, row, origin)) for row in range(len(rows)))
        examples = {row: example for row, example in read if example is not None}
        order = [row for row in order if row in examples]
    if not order:
        why = f": read returns None for each of {len(rows)} rows" if len(rows) else ""
        raise DataError(f"{task.name} has 0 usable examples in {origin}{why}")
    there = max(0, len(order) - skip)
    wanted = min(there if task.n is None else task.n, there) if n is None else n
    if skip < 0 or wanted < 1 or skip + wanted > len(order):
        left = len(order) - max(0, skip)
        advice = f"--n of at most {left}" if left > 0 else f"--skip below {len(order)}"
        raise DataError(
            f"{task.name} has {len(order)} usable examples in {origin}; skip {skip} and n "
            f"{wanted} ask for {skip + wanted}: use {advice}"
        )
    samples = []
    for index in range(skip, skip + wanted):
        row = order[index]
        example = examples.get(row) or _read(task, rows, row, origin)
        if example is None:
            raise DataError(f"{origin}, row {row}: not a problem that {task.name} can use")
        samples.append(Sample(index, row, example))
    return SampleSet(samples, origin, usable=len(order), left_out=len(rows) - len(order))


def shuffled(rows: int, seed: int) -> list[int]:
    """Numbers of all rows of a split, in the order in which `datasets` would shuffle them."""
    if seed < 0:
        raise DataError(f"a seed is at least 0, not {seed}")
    order: list[int] = np.random.default_rng(seed).permutation(rows).tolist()
    return order


@cache
def code_digest() -> str:
    """Digest of the code that makes embedded problems; part of a run's identity."""
    sources = sorted(Path(problems.__file__).parent.glob("*.py"))
    return hashlib.sha256(b"".join(path.read_bytes() for path in sources)).hexdigest()[:12]


def _open(task: Task, source: str) -> tuple[Any, str]:
    """The rows of a source, by number, and the source's exact name."""
    if source == EMBEDDED_SOURCE:
        if task.name not in EMBEDDED_TASKS:
            raise DataError(
                f"there are no embedded problems for {task.name}; give --source hub, or a .jsonl "
                "or .parquet file"
            )
        return EmbeddedRows(task.name), f"{EMBEDDED_SOURCE}:{code_digest()}"
    if source == TASK_SOURCE and task.rows is not None:
        if not isinstance(task.rows, str | Path):
            return _own_rows(task)
        source = str(task.rows)
    if source == HUB_SOURCE:
        if task.hub is None:
            raise DataError(f"{task.name} has no rows and is not on the hub; give --source FILE")
        return _open_hub(task.hub, task.hub.dataset)
    path = user_path(source)
    if exists(path) and path.is_dir():
        return _open_hub(task.hub or HubSplit(dataset=str(path), split="train"), str(path))
    if not exists(path):
        raise DataError(
            f"no source {source!r}: give embedded, hub, or a .jsonl or .parquet file that exists"
        )
    return _open_file(path)


def _own_rows(task: Task) -> tuple[list[Any], str]:
    """The rows that a task supplies, and their name with a hash."""
    with naming_failures(f"the rows of {task.name} cannot be read", DataError):
        made: Any = task.rows() if callable(task.rows) else task.rows
        rows = list(made)
        plain = [dict(row) if isinstance(row, Mapping) else row for row in rows]
        text = json.dumps(plain, default=str, sort_keys=True)
    digest = hashlib.sha256(text.encode()).hexdigest()
    return rows, f"{TASK_SOURCE}:{task.name}@{digest[:12]}"


def _open_file(path: Path) -> tuple[list[Row], str]:
    if path.suffix not in (".jsonl", ".parquet"):
        raise DataError(f"{path}: not a .jsonl or .parquet file")
    try:
        require_plain_file(path)
        data = path.read_bytes()
    except (OSError, ValueError) as error:
        raise DataError(f"{path}: cannot be read ({reason(error)})") from error
    if path.suffix == ".jsonl":
        rows = _json_lines(path, data)
    else:
        try:
            rows = pq.read_table(pa.BufferReader(data)).to_pylist()
        except (pa.ArrowException, OSError, ValueError, OverflowError) as error:
            raise DataError(f"{path}: not a readable Parquet file ({error})") from None
    return rows, f"file:{path.name}@{hashlib.sha256(data).hexdigest()[:12]}"


def _json_lines(path: Path, data: bytes) -> list[Row]:
    rows = []
    try:
        lines = data.decode().split("\n")
    except UnicodeDecodeError as error:
        raise DataError(f"{path}: not UTF-8 text ({error})") from None
    for number, line in enumerate(lines, start=1):
        if line.strip():
            try:
                rows.append(json.loads(line))
            except (ValueError, RecursionError) as error:
                raise DataError(f"{path}, line {number}: not valid JSON ({error})") from None
    return rows


def _open_hub(hub: HubSplit, dataset: str) -> tuple[Any, str]:
    try:
        import datasets
    except ImportError:
        raise DataError(
            "reading the hub needs the `datasets` library: pip install 'c4-dlm[hub]'; "
            "or use --source embedded, or --source FILE"
        ) from None
    datasets.disable_progress_bars()
    datasets.utils.logging.set_verbosity(logging.CRITICAL)  # else it logs its errors too
    try:
        version = {"revision": hub.revision} if hub.revision else {}
        rows = datasets.load_dataset(dataset, hub.config, split=hub.split, **version)
    except Exception as error:  # its many file readers raise many types
        raise DataError(
            f"cannot read {dataset} ({hub.config or 'default'}, {hub.split}): "
            f"{type(error).__name__}: {error}; check the network, or use --source embedded, or "
            "--source FILE"
        ) from error
    fingerprint = rows._fingerprint  # noqa: SLF001 - the library's only name for a version
    return rows, f"hub:{hub.public_name}/{hub.config or 'default'}/{hub.split}@{fingerprint}"


def _read(task: Task, rows: Any, index: int, origin: str) -> Example | None:
    row: Any = rows[index]
    if not isinstance(row, Mapping):
        found = shortened(repr(row))
        raise DataError(f"{origin}, row {index}: it is {found}, and no fields with names")
    try:
        example = task.read(row)
        example = None if example is None else _checked(example)
    except (C4Error, MemoryError):
        raise
    except RAISED as error:
        is_plain = isinstance(error, IndexError | TypeError | ValueError | AttributeError)
        what = str(error) if is_plain else failure(error)
        if isinstance(error, KeyError):
            what = f"no field {error}"
        if task.hub:
            what += f"; {task.name} expects the fields of {task.hub.dataset}"
        elif isinstance(error, KeyError):
            known = list(map(str, row))
            near = did_you_mean(str(error.args[0]), known)
            what += f"; {near or 'there are ' + ', '.join(known)}"
        raise DataError(f"{origin}, row {index}: {what}") from error
    if example is not None and task.family is Family.CODE:
        names = names_of_tests(example.tests, example.preamble, example.target)
        if not names.entry_points:
            raise DataError(
                f"{origin}, row {index}: its tests call nothing that the reference program defines"
            )
    return example


def _checked(example: Example) -> Example:
    """Return the example if its fields are texts that can be encoded; raise otherwise."""
    if not isinstance(example, Example):
        raise TypeError(f"read must return an Example or None, not {shortened(repr(example))}")
    texts = {name: getattr(example, name) for name in ("prompt", "target", "preamble", "tests")}
    choices = tuple(example.choices)
    for name, text in [*texts.items(), *(("choice", choice) for choice in choices)]:
        if not isinstance(text, str):
            raise TypeError(f"its {name} {text!r} is not a text")
        if any("\ud800" <= letter <= "\udfff" for letter in text):
            raise ValueError(f"{shortened(text)!r} holds half of a surrogate pair")
    return replace(example, choices=choices)
