"""The runs that a viewer shows, each opened once, with a cache of what was last read."""

from collections.abc import Sequence
from functools import cached_property, lru_cache
from typing import Any

import polars as pl

from c4.analysis.colours import FAMILY_COLOURS, mark_of
from c4.analysis.paper_names import method_label, model_label, task_label
from c4.errors import RunError
from c4.gates.candidates import CandidateReader
from c4.gates.own_signals import OwnSignals
from c4.gates.run_signals import (
    RunSignals,
    cached_signals,
    candidate_reader,
    load_signals,
    trajectory_signals,
)
from c4.replay.grader import ReplayGrader
from c4.store.grades import list_grades
from c4.store.locations import Location, parse_location
from c4.store.parts import Part
from c4.store.rows import Row
from c4.store.runs import (
    Run,
    Trajectory,
    find_recorded_tasks,
    find_runs,
    readable_runs,
    with_known_task,
)
from c4.tasks import AnswerReading, Family
from c4.view.cohort import Cohort
from c4.view.menu import GateMenu

KEPT_PARTS = 8
"""Number of parts per run whose rows or signals are kept in memory."""
KEPT_TRAJECTORIES = 32
"""Number of trajectories per run whose signals are kept if those of their part are not cached."""
KEPT_CELLS = 4
"""Number of trajectories per run whose cells are kept: those on the screen or shown before."""
KEPT_COHORTS = 16
"""Number of runs whose signals are kept in memory for all trajectories."""


class RunCache:
    """One run, with a cache of what was last read from it."""

    def __init__(
        self, key: str, run: Run, unsafe_code: bool, task: str | None, own: OwnSignals
    ) -> None:
        """Open a run for the page.

        Args:
            task: the run's task as the user typed it, or None.
            own: the users' own signals that the gates in the menu use.
        """
        self.key = key
        self.own = own
        self.run = run
        self.typed_task = task
        self.files = files_of(run)
        self.grader = ReplayGrader(run, unsafe_code, on_demand=True)
        self._rows = lru_cache(KEPT_PARTS)(
            lambda part: {row.trajectory: row for row in run.read_rows(part)}
        )
        self._stored_signals = lru_cache(KEPT_PARTS)(
            lambda part: cached_signals(run, part, own=own)
        )
        self._part_signals = lru_cache(KEPT_PARTS)(
            lambda part: next(iter(load_signals(run, parts=[part], own=own)))
        )
        self._own_signals = lru_cache(KEPT_TRAJECTORIES)(
            lambda index: trajectory_signals(run, self.trajectory(index), self.reader, own)
        )
        self.trajectory = lru_cache(KEPT_CELLS)(self._read_trajectory)

    @cached_property
    def indices(self) -> list[int]:
        return self.run.indices

    @cached_property
    def reader(self) -> CandidateReader:
        """Reader of the run's candidates."""
        return candidate_reader(self.run)

    def part_of(self, index: int) -> Part:
        """The part that holds a trajectory."""
        for part in self.run.parts:
            if index in part.trajectories:
                return part
        raise self.run.no_trajectory(index)

    def row(self, index: int) -> Row:
        """One trajectory without its cells."""
        return self._rows(self.part_of(index))[index]

    def _read_trajectory(self, index: int) -> Trajectory:
        row = self.row(index)
        for number, cells in self.run.read_cells(self.part_of(index)):
            if number == index and len(cells.token) == row.steps:
                return Trajectory(row, cells)
        raise RunError(f"{self.run.folder}: rows and cells of {index} are not of one decode")

    def signals(self, index: int) -> RunSignals:
        """Return the signals of one trajectory without computing those of its part. (1, T)"""
        read = self._stored_signals(self.part_of(index))
        if read is None:
            return self._own_signals(index)
        return read.choose([index - int(read.trajectory[0])])

    def listed_signals(self, index: int) -> RunSignals:
        """Return the signals of one trajectory, taken from those of its part. (1, T)"""
        read = self._part_signals(self.part_of(index))
        return read.choose([index - int(read.trajectory[0])])

    @cached_property
    def words(self) -> pl.DataFrame:
        """Texts and verdicts of all trajectories, for filters and search."""
        verdicts = {True: "right", False: "wrong", None: "ungraded"}
        schema = {"trajectory": pl.Int32(), "steps": pl.Int32(), "verdict": pl.String()}
        rows = [
            {
                "trajectory": row.trajectory,
                "steps": row.steps,
                "verdict": verdicts[row.correct],
                "words": "\n".join(
                    [row.prompt, row.text, row.answer or "", row.target, str(row.trajectory)]
                ).casefold(),
            }
            for row in self.run.rows()
        ]
        return pl.DataFrame(rows, schema={**schema, "words": pl.String()})

    def describe(self) -> dict[str, Any]:
        """Return the data of a run for the page's lists."""
        run = self.run
        family = str(run.task.family)
        return {
            "key": self.key,
            "model": run.model,
            "modelLabel": model_label(run.model),
            "task": run.task_name,
            "taskLabel": task_label(run.task_name),
            "family": family,
            "familyColour": FAMILY_COLOURS[family],
            "method": run.method,
            "methodLabel": method_label(run.method),
            "colour": mark_of(run.method).colour,
            "isBaseline": run.is_baseline,
            "hasCells": run.has_cells,
            "n": len(self.indices),
            "length": run.shape.length,
            "budget": run.shape.budget,
            "block": run.shape.block_length,
        }


def files_of(run: Run) -> Sequence[object]:
    """Return the files of a run: its parts, and the grades that were added to it."""
    return [*run.parts, *list_grades(run.folder)]


class Viewer:
    """All readable runs below a folder."""

    def __init__(
        self,
        root: str | Location,
        *,
        tasks: Sequence[str] = (),
        model: str | None = None,
        gates: GateMenu | None = None,
        reading: AnswerReading | None = None,
        unsafe_code: bool = False,
    ) -> None:
        self.root = parse_location(root)
        self.named = find_recorded_tasks(tasks, self.root)
        """Tasks to show, by the names that the user typed."""
        self.tasks = {task.name: typed for typed, task in self.named.items()}
        self.model = model
        self.menu = gates or GateMenu()
        self.reading = reading or AnswerReading()
        self.unsafe_code = unsafe_code
        self.runs: dict[str, RunCache] = {}
        self.cohort = lru_cache(KEPT_COHORTS)(lambda cache: Cohort(cache, self.menu))
        self.refresh()

    def refresh(self) -> None:
        """Find the runs again, because a recording may grow while it is viewed."""
        readable = readable_runs(find_runs(self.root), self.reading, list(self.named.values()))
        wanted = with_known_task(
            [
                run
                for run in readable
                if self.model in (None, run.model)
                and (not self.tasks or run.task_name in self.tasks)
            ]
        )
        if not wanted:
            raise RunError(
                f"nothing below {self.root} to show; start with: c4 record --task math "
                f"--out {self.root}"
            )
        caches = {}
        for run in wanted:
            key = "/".join(run.folder.parts[len(self.root.parts) :]) or "."
            known = self.runs.get(key)
            if known is not None and known.files == files_of(run):
                caches[key] = known
            else:
                typed = self.tasks.get(run.task_name)
                caches[key] = RunCache(key, run, self.unsafe_code, typed, self.menu.signals)
        self.runs = dict(sorted(caches.items()))  # one assignment: other threads read it

    def cache(self, key: str) -> RunCache:
        """Return a run by its key, the path of its folder below the root."""
        found = self.runs.get(key)
        if found is None:
            raise RunError(f"no run {key!r} below {self.root}; reload the page")
        return found

    @property
    def families(self) -> list[Family]:
        return sorted({cache.run.task.family for cache in self.runs.values()})

    def describe(self) -> dict[str, Any]:
        """Return the runs, the gates on offer, and how answers are read."""
        return {
            "root": str(self.root),
            "runs": [cache.describe() for cache in self.runs.values()],
            "gates": self.menu.describe(self.families),
            "reading": str(self.reading),
        }
