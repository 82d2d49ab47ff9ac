"""Exit steps of gates on recorded trajectories, and the results at those steps.

All gates, with or without cells, are evaluated on recordings here and nowhere else.
"""

from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from c4.gates.candidates import filled_predictions
from c4.gates.gate import Gate, ask, exit_step, wants_cells
from c4.gates.own_signals import own_signals
from c4.gates.run_signals import RunSignals, load_signals
from c4.gates.signals import NONE, Ints
from c4.replay.grader import ReplayGrader
from c4.store.arrays import BoolArray
from c4.store.cells import Cells
from c4.store.parts import Part
from c4.store.runs import Run
from c4.tasks import read_under

Name = TypeVar("Name", bound=Hashable)
Exits = dict[str, Ints]
"""Step at which each gate stops each trajectory, counted from 1; 0 if it never fires. (n,)"""


def exits(run: Run, gates: Mapping[str, Gate]) -> Iterator[tuple[Part, RunSignals, Exits]]:
    """Yield the exits of gates on a run, part by part. Reads cells only if a gate wants them."""
    read = load_signals(run, own=own_signals(gates.values()))
    for part, signals in zip(run.parts, read, strict=True):
        yield part, signals, ask_gates(gates, signals, run.read_cells(part))


def ask_gates(
    gates: Mapping[Name, Gate], read: RunSignals, cells: Iterable[tuple[int, Cells]]
) -> dict[Name, Ints]:
    """Return the step at which each gate stops each trajectory; 0 if it never fires. (n,) each

    Args:
        cells: numbers and cells of these trajectories, possibly among others; read only if a gate
            wants cells.
    """
    signals = read.signals
    found = {
        name: np.zeros(len(read), dtype=np.int32)
        if wants_cells(gate)
        else exit_step(ask(gate, signals))
        for name, gate in gates.items()
    }
    curious = {name: gate for name, gate in gates.items() if wants_cells(gate)}
    if curious:
        place = {number: i for i, number in enumerate(read.trajectory.tolist())}
        for number, its_cells in cells:
            if number in place:
                i, steps = place[number], len(its_cells.token)
                alone = signals.one(i, steps)
                decoded = its_cells.as_decoded()
                for name, gate in curious.items():
                    found[name][i] = exit_step(ask(gate, alone, decoded))
    return found


def at_exit(values: npt.NDArray[Any], exits: Ints, last: Ints) -> npt.NDArray[Any]:
    """Select from an array of (n, T) the value at each exit, or at the last step without an exit.

    Args:
        exits: steps counted from 1; 0 for no exit. (settings, n)
        last: each trajectory's own last step. (n,)
    """
    steps = np.where(exits > 0, exits, last) - 1  # (settings, n)
    return values[np.arange(len(values)), steps]


def recording_name(run: Run) -> str:
    """Name of a recording: the task, followed by the method unless it is the full decode."""
    name = run.task_name
    return name if run.method == "baseline" else f"{name} ({run.method})"


@dataclass(frozen=True)
class RunSubset:
    """Some trajectories of one run, with steps, answers and grades at given exits.

    Exits are arrays of (settings, n), and so are the results.
    """

    run: Run
    signals: RunSignals
    unsafe_code: bool = False

    def __len__(self) -> int:
        return len(self.signals)

    @property
    def name(self) -> str:
        return recording_name(self.run)

    def steps_at(self, exits: Ints) -> Ints:
        """Forward passes spent; all recorded steps if the gate never fires."""
        return self._at(self.signals.signals.step, exits)

    def same_at(self, exits: Ints) -> BoolArray:
        """Whether the answer at each exit equals the full decode's."""
        signals = self.signals.signals
        return self._at(signals.answer == signals.last("answer"), exits)

    def grades_at(self, exits: Ints) -> tuple[BoolArray, BoolArray]:
        """Whether the answer at each exit is right, and whether it could be graded."""
        grader = ReplayGrader(self.run, self.unsafe_code)
        if not grader.by_form:
            return self._grade_texts(exits, grader)
        correct = self._at(self._right, exits)
        return correct, np.ones_like(correct)

    def _at(self, values: npt.NDArray[Any], exits: Ints) -> npt.NDArray[Any]:
        return at_exit(values, exits, self.signals.signals.steps)

    @cached_property
    def _right(self) -> BoolArray:
        """Whether the answer at each step is the target. (n, T)"""
        task = read_under(self.run.task, self.run.reading.style)
        targets = {row.trajectory: task.gold(row.example) for row in self.run.rows()}
        numbers = [
            values.index(targets[index]) if targets[index] in values else NONE - 1
            for index, values in zip(
                self.signals.trajectory.tolist(), self.signals.candidates, strict=True
            )
        ]
        return self.signals.signals.answer == np.array(numbers, dtype=np.int32)[:, None]

    def _grade_texts(self, exits: Ints, grader: ReplayGrader) -> tuple[BoolArray, BoolArray]:
        """Grade the whole texts at the exits, each distinct exit step once."""
        steps = self.steps_at(exits)  # (settings, n)
        place = {index: i for i, index in enumerate(self.signals.trajectory.tolist())}
        correct, gradable = np.zeros((2, *steps.shape), dtype=np.bool_)
        for trajectory in self.run:
            i = place.get(trajectory.row.trajectory)
            if i is None:
                continue
            filled = filled_predictions(trajectory.cells.token, trajectory.cells.masked)
            for step in np.unique(steps[:, i]).tolist():
                given = grader.correct(trajectory.row, filled[step - 1].tolist())
                there = steps[:, i] == step
                correct[there, i], gradable[there, i] = given is True, given is not None
        return correct, gradable
