"""The runs that a viewer shows, each opened once, with what was last read of it kept."""

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Sequence
from functools import cached_property
from typing import Any, TypeVar

from c4.analysis.colours import FAMILY_COLOURS, mark_of
from c4.analysis.names import method_label, model_label, task_label
from c4.errors import RunError
from c4.gates.candidates import CandidateReader
from c4.gates.own_signals import NO_SIGNALS, OwnSignals
from c4.gates.run_signals import (
    RunSignals,
    cached_signals,
    candidate_reader,
    load_signals,
    stack_signals,
    trajectory_signals,
)
from c4.replay.grader import AskedGrader
from c4.replay.pools import choose
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
from c4.view.offers import Offers

KEPT_PARTS = 8
"""Parts whose rows or signals are kept in memory, of every run."""
KEPT_TRAJECTORIES = 32
"""Trajectories whose own signals are kept where those of their part are not cached."""
KEPT_CELLS = 4
"""Trajectories whose cells are kept: the ones on the screen and the ones before them."""
KEPT_COHORTS = 16
"""Runs of which the signals of all trajectories are kept in memory."""
KEPT_WORDS = 64
"""Runs of which all texts are kept in memory, to be searched."""

Value = TypeVar("Value")


class Kept:
    """Remembers what was computed last. Safe to be asked by several threads."""

    def __init__(self, most: int) -> None:
        self.most = most
        self._values: OrderedDict[Hashable, Any] = OrderedDict()
        self._making: dict[Hashable, threading.Lock] = {}
        self._lock = threading.Lock()

    def peek(self, key: Hashable) -> Any:
        """The value of a key, if it is known; else None."""
        with self._lock:
            if key in self._values:
                self._values.move_to_end(key)
            return self._values.get(key)

    def get(self, key: Hashable, make: Callable[[], Value]) -> Value:
        """The value of a key, made once if it is not known; who asks for another need not wait."""
        with self._lock:
            making = self._making.setdefault(key, threading.Lock())
        with making:
            known: Value | None = self.peek(key)
            return self._put(key, make()) if known is None else known

    def keep_only(self, keys: Iterable[Hashable]) -> None:
        """Forget the values of all other keys."""
        wanted = set(keys)
        with self._lock:
            for gone in [key for key in self._values if key not in wanted]:
                del self._values[gone]
                self._making.pop(gone, None)

    def _put(self, key: Hashable, value: Value) -> Value:
        """Keep a value; the one that was asked for longest ago goes."""
        with self._lock:
            self._values[key] = value
            while len(self._values) > self.most:
                gone, _ = self._values.popitem(last=False)
                self._making.pop(gone, None)
        return value


class Book:
    """One run on the shelf."""

    def __init__(
        self,
        key: str,
        run: Run,
        unsafe_code: bool,
        task: str | None = None,
        own: OwnSignals = NO_SIGNALS,
    ) -> None:
        """Open a book.

        Args:
            task: the run's task as the user named it, if the user did.
            own: the users' own signals that the gates on offer name.
        """
        self.key = key
        self.own = own
        self.run = run
        self.typed_task = task
        self.files = _files(run)
        self.grader = AskedGrader(run, unsafe_code)
        self._rows = Kept(KEPT_PARTS)
        self._signals = Kept(KEPT_PARTS)
        self._alone = Kept(KEPT_TRAJECTORIES)
        self._cells = Kept(KEPT_CELLS)

    @cached_property
    def indices(self) -> list[int]:
        return self.run.indices

    def part_of(self, index: int) -> Part:
        """The part that holds a trajectory."""
        for part in self.run.parts:
            if index in part.trajectories:
                return part
        raise self.run.no_trajectory(index)

    def row(self, index: int) -> Row:
        """One trajectory without its cells."""
        part = self.part_of(index)
        rows = self._rows.get(
            part.path.name, lambda: {r.trajectory: r for r in self.run.read_rows(part)}
        )
        return rows[index]

    def trajectory(self, index: int) -> Trajectory:
        """One trajectory with its cells, which are kept while its sliders move."""
        return self._cells.get(index, lambda: self._read_trajectory(index))

    def _read_trajectory(self, index: int) -> Trajectory:
        row = self.row(index)
        for number, cells in self.run.read_cells(self.part_of(index)):
            if number == index and len(cells.token) == row.steps:
                return Trajectory(row, cells)
        raise RunError(f"{self.run.folder}: rows and cells of {index} are not of one decode")

    def signals(self, recorded: Trajectory) -> RunSignals:
        """The signals of one trajectory, without waiting for others. Arrays are (1, T)."""
        part = self.part_of(recorded.row.trajectory)
        read = self._signals.peek(part.path.name) or cached_signals(self.run, part, own=self.own)
        if read is None:
            return self._alone.get(
                recorded.row.trajectory,
                lambda: trajectory_signals(self.run, recorded, self.reader, self.own),
            )
        self._signals.get(part.path.name, lambda: read)
        return choose(read, [recorded.row.trajectory - int(read.trajectory[0])])

    def listed_signals(self, index: int) -> RunSignals:
        """The signals of one trajectory, out of its whole part's, which are computed if need be."""
        part = self.part_of(index)
        read = self._signals.get(
            part.path.name,
            lambda: next(iter(load_signals(self.run, parts=[part], own=self.own))),
        )
        return choose(read, [index - int(read.trajectory[0])])

    @cached_property
    def reader(self) -> CandidateReader:
        """What reads the run's candidates."""
        return candidate_reader(self.run)

    def all_signals(self) -> RunSignals:
        """The signals of all trajectories, stacked."""
        return stack_signals(list(load_signals(self.run, own=self.own)))

    def describe(self) -> dict[str, Any]:
        """What the page shows of a run in its lists."""
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


def _files(run: Run) -> Sequence[object]:
    """The files that a run consists of: its parts, and the grades that were added to it."""
    return [*run.parts, *list_grades(run.folder)]


class Shelf:
    """All runs below a folder that can be read."""

    def __init__(
        self,
        root: str | Location,
        *,
        tasks: Sequence[str] = (),
        model: str | None = None,
        gates: Offers | None = None,
        reading: AnswerReading | None = None,
        unsafe_code: bool = False,
    ) -> None:
        self.root = parse_location(root)
        self.named = find_recorded_tasks(tasks, self.root)
        """The tasks to show, by what the user typed."""
        self.tasks = {task.name: typed for typed, task in self.named.items()}
        self.model = model
        self.offers = gates or Offers()
        self.reading = reading or AnswerReading()
        self.unsafe_code = unsafe_code
        self.cohorts = Kept(KEPT_COHORTS)
        self.words = Kept(KEPT_WORDS)
        self.books: dict[str, Book] = {}
        self._lock = threading.Lock()
        self.refresh()

    def refresh(self) -> None:
        """Look again what there is: a recording may go on while one looks at it."""
        runs = readable_runs(find_runs(self.root), self.reading, list(self.named.values()))
        wanted = with_known_task([run for run in runs if self._wants(run)])
        found = {self._key(run.folder): run for run in wanted}
        if not found:
            raise RunError(
                f"nothing below {self.root} to show; start with: c4 record --task math "
                f"--out {self.root}"
            )
        with self._lock:
            self.books = {key: self._book(key, run) for key, run in sorted(found.items())}
            for kept in (self.cohorts, self.words):
                kept.keep_only(self.books.values())

    def _wants(self, run: Run) -> bool:
        return self.model in (None, run.model) and (not self.tasks or run.task_name in self.tasks)

    def _key(self, folder: Location) -> str:
        return "/".join(folder.parts[len(self.root.parts) :]) or "."

    def _book(self, key: str, run: Run) -> Book:
        """The book that is open already, unless more was recorded or graded since."""
        known = self.books.get(key)
        if known is not None and known.files == _files(run):
            return known
        return Book(key, run, self.unsafe_code, self.tasks.get(run.task_name), self.offers.signals)

    def book(self, key: str) -> Book:
        """A run by its key, which is its folder below the root."""
        found = self.books.get(key)
        if found is None:
            raise RunError(f"no run {key!r} below {self.root}; reload the page")
        return found

    @property
    def families(self) -> list[Family]:
        return sorted({book.run.task.family for book in self.books.values()})

    def describe(self) -> dict[str, Any]:
        """The runs, the gates on offer and how answers are read."""
        return {
            "root": str(self.root),
            "runs": [book.describe() for book in self.books.values()],
            "gates": self.offers.describe(self.families),
            "reading": str(self.reading),
        }
