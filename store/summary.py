"""One-line summary of a run, compared with the baseline on the same examples."""

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
    """One-line summary of a run. Comparisons with the baseline are None if there is none."""

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
    """Mean number of forward passes."""
    budget: int
    saving: float
    fired: float
    """Fraction of decodes that a gate ended."""
    tokens_per_forward: float
    drop_points: float | None
    """Percentage points of accuracy lost to the baseline, on examples graded in both runs."""
    identical: float | None
    """Fraction of these examples with the same answer as the baseline."""
    wall_seconds: float
    """Sum of the decoding times of all trajectories; times of one batch overlap."""
    batch: int
    """Examples decoded together."""
    bytes: int
    """Size of the recorded parts, without cached signals."""
    folder: Location


def summarise(
    folder: Location, indices: Collection[int] | None = None, reading: AnswerReading | None = None
) -> RunSummary:
    """Summarise the trajectories of a run, or some of them; a run just begun has none."""
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
    """Return the rows of the full decode of the same examples, with or without cells, or none.

    A neighbouring run that cannot be read is logged and does not prevent the summary.
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
