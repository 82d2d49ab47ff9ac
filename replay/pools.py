"""The trajectories that a gate is calibrated on, and those it is then tried on."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from c4.gates.calibrations import PoolShare
from c4.gates.candidates import filled_predictions
from c4.gates.run_signals import RunSignals
from c4.gates.signals import NONE, Ints
from c4.replay.grader import ReplayGrader
from c4.replay.grids import at_exit
from c4.store.arrays import BoolArray
from c4.store.runs import Run
from c4.tasks import Grader, read_under
from c4.tasks.examples import examples_set_aside

POOL_TASKS = ("mmlu", "gsm8k", "math")
"""The paper's pool: tasks whose examples settings are chosen on, as far as they are recorded."""
OF_THE_EXAMPLES = ("task", "origin", "seed", "order")
"""The identity that two runs share if their trajectory numbers mean the same problems."""


@dataclass(frozen=True)
class GradeArrays:
    """What answers are worth, of many settings on many trajectories. (settings, n) each"""

    correct: BoolArray
    gradable: BoolArray
    """False where the machine failed to grade; `correct` says nothing there."""


@dataclass(frozen=True)
class RunSubset:
    """Some trajectories of one run, ready to be asked about any exit step."""

    run: Run
    signals: RunSignals
    unsafe_code: bool = False

    def __len__(self) -> int:
        return len(self.signals)

    @property
    def name(self) -> str:
        return recording_name(self.run)

    def steps_at(self, exits: Ints) -> Ints:
        """Forward passes spent; all recorded steps if the gate never fires. (settings, n)"""
        return self._at(self.signals.signals.step, exits)

    def same_at(self, exits: Ints) -> BoolArray:
        """Whether the answer is the full decode's. (settings, n)"""
        signals = self.signals.signals
        return self._at(signals.answer == signals.last("answer"), exits)

    def grades_at(self, exits: Ints) -> "GradeArrays":
        """What the answers are worth. (settings, n)"""
        by_form = self.run.reading.grader is Grader.EXACT
        if not (by_form and self.run.task.grades_by_form):
            return self._grade_texts(exits)
        correct = self._at(self._right, exits)
        return GradeArrays(correct, np.ones_like(correct))

    def _at(self, values: npt.NDArray[Any], exits: Ints) -> npt.NDArray[Any]:
        return at_exit(values, exits, self.signals.signals.steps)

    @cached_property
    def _right(self) -> BoolArray:
        """Whether the answer at each step is the target. (n, T)"""
        task = read_under(self.run.task, self.run.reading.style)
        targets = {row.trajectory: task.gold(row.example) for row in self.run.rows()}
        number = [
            values.index(targets[index]) if targets[index] in values else NONE - 1
            for index, values in zip(
                self.signals.trajectory.tolist(), self.signals.candidates, strict=True
            )
        ]
        return self.signals.signals.answer == np.array(number, dtype=np.int32)[:, None]

    def _grade_texts(self, exits: Ints) -> "GradeArrays":
        """Grades of whole texts: every distinct one of the exits asked for is graded once."""
        steps = self.steps_at(exits)  # (settings, n)
        place = {index: i for i, index in enumerate(self.signals.trajectory.tolist())}
        grader = ReplayGrader(self.run, self.unsafe_code)
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
        return GradeArrays(correct, gradable)


def pool_size(run: Run) -> int:
    """Number of examples that are set aside for calibration; 0 for a user's own file."""
    return examples_set_aside(run.task, run.manifest.identity["source"])


@dataclass(frozen=True)
class Pools:
    """Examples that calibration may have seen.

    An example is the same problem whatever decodes it, so what was chosen on one run counts for
    every model, shape and method.
    """

    shares: Sequence[PoolShare] = ()
    """The trajectories that settings on disk were chosen on."""

    def of(self, run: Run) -> frozenset[int]:
        """Numbers of the examples that are set aside, and of those that a setting was chosen on."""
        return frozenset(range(pool_size(run))) | self.chosen_on(run.manifest.identity)

    def chosen_on(self, identity: Mapping[str, Any]) -> frozenset[int]:
        """Numbers of the examples that a setting was chosen on, on this run or one like it."""
        asked = _example_set(identity)
        alike = (s.trajectories for s in self.shares if _example_set(s.identity) == asked)
        return frozenset().union(*alike)


SET_ASIDE = Pools()
"""The examples that tasks set aside, and no others."""


def _example_set(identity: Mapping[str, Any]) -> tuple[Any, ...]:
    return tuple(identity.get(key) for key in OF_THE_EXAMPLES)


def recording_name(run: Run) -> str:
    """The task, and the method if it is not the full decode that was recorded."""
    name = run.task_name
    return name if run.method == "baseline" else f"{name} ({run.method})"


def choose(signals: RunSignals, rows: Collection[int]) -> RunSignals:
    """Some of the trajectories."""
    index = np.array(list(rows))
    return RunSignals(
        signals.trajectory[index],
        signals.signals.map(lambda column: column[index]),
        [signals.candidates[i] for i in index],
    )
