"""Reading live runs: one row per example, and what they come to beside the baseline."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from c4.errors import RunError
from c4.record._format import LIVE, LIVE_KEY, Part, list_parts, open_part, read_manifest
from c4.record._grades import GRADE
from c4.record._methods import is_baseline, label_under
from c4.record._rows import LiveFacts, LiveRow, live_row
from c4.record._run import LIVE_PATTERN, OpenRun, Run, open_run, pending_row
from c4.tasks import AnswerReading

OF_THE_METHOD = ("method", "rule", "gate", "forward", "recorded")
"""What may differ between two decodes that are compared example by example."""


class LiveRun(OpenRun):
    """The results of one method with one model on one task."""

    def __init__(self, folder: Path, reading: AnswerReading | None = None) -> None:
        super().__init__(folder, reading)
        if "method" not in self.manifest.identity:
            raise RunError(f"{folder}: a recording, not a live run; make one with: c4 run")

    @property
    def method(self) -> str:
        """The method's label, which says how its gate reads only if that is not the reading."""
        return label_under(self.manifest.identity, self.reading)

    @property
    def is_baseline(self) -> bool:
        """Whether it is the full decode that others are compared with, whatever its label."""
        return is_baseline(self.manifest.identity)

    def __len__(self) -> int:
        return int(self.table().num_rows)

    def rows(self) -> Iterator[LiveRow]:
        """The examples, in order, each with its grade under the run's reading."""
        for row in self.table().to_pylist():
            yield LiveRow(**row)

    def table(self) -> pa.Table:
        """The same as a table, see `LIVE`; sealed or not."""
        return self._table

    @cached_property
    def _table(self) -> pa.Table:
        # Pending first: what is sealed while this looks is found at least once.
        pending = _read_pending(self.folder)
        parts = list_parts(self.folder / "results")
        sealed = {index for part in parts for index in part.trajectories}
        rows = [row for row in pending if row["trajectory"] not in sealed]
        tables = [_read_results(part) for part in parts]
        tables.append(pa.Table.from_pylist(rows, schema=LIVE))
        return self._with_grades(pa.concat_tables(tables).sort_by("trajectory"))

    def _with_grades(self, table: pa.Table) -> pa.Table:
        """Results with the grades of the run's reading in the place of their own."""
        own = table.select(["trajectory", *GRADE]).to_pylist()
        grades = [self._grades.of(row["trajectory"], row) for row in own]
        for name in GRADE:
            field = LIVE.field(name)
            column = pa.array([grade[name] for grade in grades], field.type)
            table = table.set_column(table.schema.get_field_index(name), field, column)
        return table


def _read_results(part: Part) -> pa.Table:
    table = open_part(part).read()
    if table.schema.names != LIVE.names:
        raise RunError(f"{part.path}: columns of another c4; run it again with --fresh")
    return table


def _read_pending(folder: Path) -> list[dict[str, Any]]:
    rows = {}
    for part in list_parts(folder / "pending"):
        try:
            rows[part.first] = pending_result(open_part(part))
        except FileNotFoundError:
            continue  # sealed away meanwhile
    return list(rows.values())


def pending_facts(file: pq.ParquetFile) -> LiveFacts | None:
    """What a live decode put beside its row in a pending file; None in a recording."""
    data = file.schema_arrow.metadata.get(LIVE_KEY)
    return None if data is None else LiveFacts.from_json(data)


def pending_result(file: pq.ParquetFile) -> dict[str, Any]:
    """The row of `LIVE` that a pending file of a live run holds."""
    facts = pending_facts(file)
    if facts is None:
        raise RunError("a recording's pending file in a live run; start over with --fresh")
    return live_row(pending_row(file), facts)


def open_live(path: str | Path, reading: AnswerReading | None = None) -> LiveRun:
    """Open one live run, the folder that holds a manifest.json, to be read in one way."""
    folder = Path(path)
    if not folder.is_dir():
        raise RunError(f"{folder}: no such folder")
    return LiveRun(folder, reading)


def open_any(path: str | Path, reading: AnswerReading | None = None) -> Run | LiveRun:
    """Open a live run, with its cells or without, or else a recording."""
    folder = Path(path)
    live = folder.is_dir() and "method" in read_manifest(folder).identity
    return open_live(folder, reading) if live else open_run(folder, reading)


def find_live(root: str | Path) -> list[Path]:
    """The folders of all live runs below a root, in order; with the root, if it is one itself."""
    folders = [path.parent for path in Path(root).glob(LIVE_PATTERN)]
    own = Path(root) / "manifest.json"
    if own.exists() and "method" in read_manifest(Path(root)).identity:
        folders.append(Path(root))
    return sorted(folders)


@dataclass(frozen=True)
class LiveSummary:
    """A live run in one line. What compares with the baseline is None where there is none."""

    model: str
    task: str
    method: str
    n: int
    accuracy: float | None
    """Share correct of the graded."""
    steps: float
    """Forward passes, on average."""
    budget: int
    saving: float
    exits: float
    """Share that a gate ended."""
    tokens_per_forward: float
    drop: float | None
    """Points of accuracy below the baseline, on the examples both have."""
    identical: float | None
    """Share of them with the baseline's answer."""


def summarise_live(
    folder: Path, indices: Collection[int] | None = None, reading: AnswerReading | None = None
) -> LiveSummary:
    """The examples of a live run, or some of them, beside the baseline of the same folder."""
    run = open_live(folder, reading)
    rows = {row.trajectory: row for row in run.rows()}
    rows = {i: row for i, row in rows.items() if indices is None or i in indices}
    if not rows:
        raise RunError(f"{folder}: none of the examples asked for is there")
    steps = sum(row.forward_passes for row in rows.values()) / len(rows)
    graded = [row.correct for row in rows.values() if row.correct is not None]
    return LiveSummary(
        model=run.model,
        task=run.task,
        method=run.method,
        n=len(rows),
        accuracy=sum(graded) / len(graded) if graded else None,
        steps=steps,
        budget=run.shape.steps,
        saving=1 - steps / run.shape.steps,
        exits=sum(row.exit_step is not None for row in rows.values()) / len(rows),
        tokens_per_forward=run.shape.length / steps,
        **_compare(rows, _baseline_of(run)),
    )


def _baseline_of(run: LiveRun) -> Mapping[int, LiveRow]:
    """The baseline's examples, if it was run alike; empty otherwise."""
    for path in sorted(run.folder.parent.glob("method=*/manifest.json")):
        other = open_live(path.parent, run.reading)
        alike = conditions(other.manifest.identity) == conditions(run.manifest.identity)
        if other.is_baseline and alike:
            return {row.trajectory: row for row in other.rows()}
    return {}


def conditions(identity: Mapping[str, Any]) -> dict[str, Any]:
    """What a run, live or recorded, shares with the runs it may be compared with."""
    return {k: v for k, v in identity.items() if k not in OF_THE_METHOD}


def _compare(
    rows: Mapping[int, LiveRow], baseline: Mapping[int, LiveRow]
) -> dict[str, float | None]:
    pairs = [(rows[i], baseline[i]) for i in sorted(rows.keys() & baseline.keys())]
    pairs = [(a, b) for a, b in pairs if a.correct is not None and b.correct is not None]
    if not pairs:
        return {"drop": None, "identical": None}
    lost = sum(bool(b.correct) - bool(a.correct) for a, b in pairs)
    same = sum(a.answer == b.answer for a, b in pairs)
    return {"drop": 100 * lost / len(pairs), "identical": same / len(pairs)}
