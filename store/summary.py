"""A run in one line, beside the baseline of the same examples."""

import logging
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from c4.errors import RunError
from c4.store.locations import Location
from c4.store.manifest import RECORDED, conditions, is_run
from c4.store.parts import PART
from c4.store.rows import Row
from c4.store.runs import Run, open_run
from c4.store.storage import list_folders, sizes_in
from c4.tasks import AnswerReading

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class RunSummary:
    """A run in one line. What compares with the baseline is None where there is none."""

    model: str
    task: str
    method: str
    source: str
    n: int
    graded: int
    """Number of graded answers; `accuracy` is computed over them."""
    not_gradable: int
    """Number of answers that the machine failed to grade; they count neither way."""
    accuracy: float | None
    steps: float
    """Forward passes, on average."""
    budget: int
    saving: float
    fired: float
    """Share of decodes that a gate ended."""
    tokens_per_forward: float
    drop_points: float | None
    """Points of accuracy below the baseline, on the examples both have."""
    identical: float | None
    """Share of these examples with the baseline's answer."""
    wall_seconds: float
    """Sum of the decoding times of all trajectories, which overlap in a batch."""
    batch: int
    """Examples decoded together."""
    bytes: int
    """Of what was recorded, without cached signals."""
    folder: Location


def summarise(
    folder: Location, indices: Collection[int] | None = None, reading: AnswerReading | None = None
) -> RunSummary:
    """The trajectories of a run, or some of them, in one line; a run just begun has none."""
    run = open_run(folder, reading)
    rows = {row.trajectory: row for row in run.rows()}
    rows = {i: row for i, row in rows.items() if indices is None or i in indices}
    if indices is not None and not rows:
        raise RunError(f"{folder}: none of the examples asked for is there")
    count = max(1, len(rows))
    steps = sum(row.steps for row in rows.values()) / count
    graded = [row.correct for row in rows.values() if row.correct is not None]
    files = (file for kind in RECORDED for file in sizes_in(folder / kind))
    return RunSummary(
        model=run.model,
        task=run.task_name,
        method=run.method,
        source=run.manifest.identity["source"],
        n=len(rows),
        graded=len(graded),
        not_gradable=sum(row.not_gradable for row in rows.values()),
        accuracy=sum(graded) / len(graded) if graded else None,
        steps=steps,
        budget=run.shape.budget,
        saving=1 - steps / run.shape.budget if rows else 0.0,
        fired=sum(row.exit_step is not None for row in rows.values()) / count,
        tokens_per_forward=run.shape.length / steps if rows else 0.0,
        **_compare(rows, _baseline_of(run)),
        wall_seconds=sum(row.wall_seconds for row in rows.values()),
        batch=run.manifest.identity["batch"],
        bytes=sum(size for path, size in files if PART.fullmatch(path.name)),
        folder=folder,
    )


def _baseline_of(run: Run) -> Mapping[int, Row]:
    """The rows of the full decode of the same examples, recorded or not; empty if there is none.

    A neighbour that cannot be read is no reason to be silent about the run itself.
    """
    found: dict[int, Row] = {}
    beside = (folder for folder in list_folders(run.folder.parent) if is_run(folder))
    for folder in beside:
        try:
            other = open_run(folder, run.reading)
            alike = conditions(other.manifest.identity) == conditions(run.manifest.identity)
            if other.is_baseline and alike:
                found |= {row.trajectory: row for row in other.rows()}
        except RunError as error:
            if folder == run.folder:
                raise
            log.warning("nothing is compared with %s", error)
    return found


def _compare(rows: Mapping[int, Row], baseline: Mapping[int, Row]) -> dict[str, float | None]:
    pairs = [(rows[i], baseline[i]) for i in sorted(rows.keys() & baseline.keys())]
    pairs = [(a, b) for a, b in pairs if a.correct is not None and b.correct is not None]
    if not pairs:
        return {"drop_points": None, "identical": None}
    lost = sum(bool(b.correct) - bool(a.correct) for a, b in pairs)
    same = sum(a.answer == b.answer for a, b in pairs)
    return {"drop_points": 100 * lost / len(pairs), "identical": same / len(pairs)}
