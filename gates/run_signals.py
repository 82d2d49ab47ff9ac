"""Signals of a whole run, computed once and cached next to it (locally if the run is remote).

There is one cache file per part and reading, so that memory stays bounded. A file is used only if
it is intact and its key matches the current cells, settings and code; otherwise its signals are
computed again.
"""

import hashlib
import json
import logging
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from c4 import tasks as tasks_room
from c4.errors import RunError
from c4.gates import candidates as candidates_module
from c4.gates import signals as signals_module
from c4.gates.candidates import TAIL_FRAC, CandidateReader
from c4.gates.own_signals import NO_SIGNALS, OwnSignals
from c4.gates.signals import NONE, SIGNAL_NAMES, Ints, Longs, Signals, as_signals, read_signals
from c4.plugins import definition
from c4.store.parts import PART, Part, list_parts, naming, write_part
from c4.store.runs import Run, Trajectory
from c4.store.storage import remove_files, remove_leftovers
from c4.tasks import read_under

log = logging.getLogger(__name__)

KEY = b"c4.signals"
READING = b"c4.reading"
VALUES = b"c4.values"


@dataclass(frozen=True)
class RunSignals:
    """The signals of some trajectories of a run, stacked."""

    trajectory: Ints
    """Numbers of the trajectories. (n,)"""
    signals: Signals
    """Arrays of (n, T); `signals.steps` says how many of the T each trajectory has."""
    candidates: Sequence[Sequence[str]]
    """Values that the candidate and answer numbers of each trajectory stand for."""

    def __len__(self) -> int:
        return len(self.trajectory)

    def choose(self, rows: Sequence[int] | Longs) -> "RunSignals":
        """Select trajectories by row index."""
        index = np.asarray(rows, dtype=np.int64)
        return RunSignals(
            self.trajectory[index],
            self.signals.map(lambda column: column[index]),
            [self.candidates[i] for i in index],
        )


def load_signals(
    run: Run,
    tail_frac: float = TAIL_FRAC,
    parts: Sequence[Part] | None = None,
    own: OwnSignals = NO_SIGNALS,
) -> Iterator[RunSignals]:
    """Yield the signals of a run under its reading, part by part, from the cache if it is valid.

    Args:
        parts: the parts of the run to load; all of them if None.
        own: users' own signals to include.
    """
    reader = candidate_reader(run, tail_frac)
    kept = _list_cache(run)
    for part in run.parts if parts is None else parts:
        key = signals_key(part, run, tail_frac, own)
        cached = _read_cache(run, kept.get(part.trajectories, []), key)
        if cached is None:
            cached = _compute(run, part, reader, own)
            _write_cache(run, part, key, cached)
        yield cached


def candidate_reader(run: Run, tail_frac: float = TAIL_FRAC) -> CandidateReader:
    """Make the reader that extracts candidates from a run's predictions, under its reading."""
    return CandidateReader(run.task, run.vocabulary, run.shape.length, run.reading, tail_frac)


def cached_signals(
    run: Run, part: Part, tail_frac: float = TAIL_FRAC, own: OwnSignals = NO_SIGNALS
) -> RunSignals | None:
    """Return the signals of a part from a valid cache; None if they would have to be computed."""
    kept = _list_cache(run).get(part.trajectories, [])
    return _read_cache(run, kept, signals_key(part, run, tail_frac, own))


def trajectory_signals(
    run: Run, recorded: Trajectory, reader: CandidateReader, own: OwnSignals = NO_SIGNALS
) -> RunSignals:
    """Compute the signals of one trajectory, without the cache. Arrays are (1, T)."""
    number = np.array([recorded.row.trajectory], dtype=np.int32)
    choices = [tuple(recorded.row.choices)]
    return RunSignals(number, *read_signals(recorded.cells[None], run.shape, reader, choices, own))


def stack_signals(parts: Sequence[RunSignals]) -> RunSignals:
    """Stack the signals of several parts, padded with NaN or -1 to the same number of steps."""
    steps = max(part.signals.step.shape[-1] for part in parts)

    def padded(column: npt.NDArray[Any]) -> npt.NDArray[Any]:
        empty = np.nan if column.dtype.kind == "f" else NONE
        return np.pad(column, ((0, 0), (0, steps - column.shape[1])), constant_values=empty)

    columns = {
        name: np.concatenate([padded(getattr(part.signals, name)) for part in parts])
        for name in vars(parts[0].signals)
    }
    return RunSignals(
        np.concatenate([part.trajectory for part in parts]),
        as_signals(columns),
        [values for part in parts for values in part.candidates],
    )


def signals_key(part: Part, run: Run, tail_frac: float, own: OwnSignals = NO_SIGNALS) -> str:
    """Digest of the signals' inputs: cells, choices, tokenizer, settings, task and code."""
    identity = run.manifest.identity
    cells = "" if part.cells is None else part.cells.path.name
    facts = [cells, part.path.name, identity["tokenizer_sha256"]]
    facts += [run.task_name, str(run.shape), identity["end_ids"], tail_frac, str(run.reading)]
    read = read_under(run.task, run.reading.style)  # `run.task.read` is defined in the task's file
    facts += [read.search, definition(read.extract), definition(run.task.read), code_hash()]
    facts += [signal.definition for signal in own.values()]
    return hashlib.sha256(json.dumps(facts).encode()).hexdigest()


@cache
def code_hash() -> str:
    """Digest of the source of the modules that signals depend on."""
    modules = (signals_module, candidates_module)
    paths = [Path(str(module.__file__)) for module in modules]
    tasks_folder = Path(str(tasks_room.__file__)).parent
    paths += sorted([*tasks_folder.glob("*.py"), *tasks_folder.glob("reading/*.py")])
    sources = [path.read_bytes() for path in paths]
    return hashlib.sha256(b"".join(sources)).hexdigest()


def _compute(run: Run, part: Part, reader: CandidateReader, own: OwnSignals) -> RunSignals:
    choices = {row.trajectory: tuple(row.choices) for row in run.read_rows(part)}
    read = []
    for numbers, cells in run.read_batches(part):
        offered = [choices[number] for number in numbers]
        found = read_signals(cells, run.shape, reader, offered, own)
        read.append(RunSignals(np.array(numbers, dtype=np.int32), *found))
    return stack_signals(read)


def _list_cache(run: Run) -> dict[range, list[Part]]:
    """Cache files of a run by the trajectories they cover; empty if they cannot be listed."""
    kept: dict[range, list[Part]] = {}
    try:
        for file in list_parts(run.signals_folder):
            kept.setdefault(file.trajectories, []).append(file)
    except RunError as error:
        log.info("%s: signals are computed again: %s", run.folder, error)
    return kept


def _read_cache(run: Run, kept: Sequence[Part], key: str) -> RunSignals | None:
    for cached in kept:
        try:
            metadata = cached.load(run.manifest.digest).metadata
            with naming(cached.path):
                if metadata.get(KEY) == key.encode():
                    return _from_table(cached.file.read(), json.loads(metadata[VALUES]))
        except (RunError, FileNotFoundError):
            continue  # damaged or deleted: computed again
        finally:
            cached.forget()
    return None


def _write_cache(run: Run, part: Part, key: str, signals: RunSignals) -> None:
    """Cache signals; a read-only or full storage, or a concurrent write, is only logged."""
    folder = run.signals_folder
    # The names of users' own signals, not their sources, so that an edited signal is replaced.
    own = sorted(vars(signals.signals).keys() - SIGNAL_NAMES)
    reading = "+".join([str(run.reading), *own]).encode()
    facts = {KEY: key.encode(), READING: reading, VALUES: json.dumps(signals.candidates).encode()}
    try:
        stale = []  # files of this part and of the pending trajectories that were sealed into it
        for kept in list_parts(folder):
            if part.first <= kept.first <= kept.last <= part.last:
                with suppress(RunError, FileNotFoundError):
                    if kept.load(run.manifest.digest).metadata.get(READING) == reading:
                        stale.append(kept.path)
        remove_leftovers(folder, lambda name: PART.fullmatch(name) is not None)
        numbers = signals.trajectory.tolist()
        written = write_part(folder, _to_table(signals), numbers, run.manifest, facts)
        remove_files(path for path in stale if path != written.path)
    except (OSError, RunError) as error:
        log.info("%s: signals are not kept, and will be computed again: %s", run.folder, error)


def _to_table(signals: RunSignals) -> pa.Table:
    """Convert signals to a table with one row per step."""
    steps = signals.signals.step.shape[-1]
    columns = {"trajectory": np.repeat(signals.trajectory, steps)}
    columns |= {name: column.ravel() for name, column in vars(signals.signals).items()}
    return pa.table(columns)


def _from_table(table: pa.Table, candidates: list[list[str]]) -> RunSignals:
    count = len(candidates)
    columns = {
        name: table.column(name).to_numpy().reshape(count, -1) for name in table.column_names
    }
    trajectory = columns.pop("trajectory")[:, 0].copy()
    return RunSignals(trajectory, as_signals(columns), candidates)
