"""The trajectories that a gate is calibrated on, and those it is then tried on."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from c4.errors import RunError
from c4.record import BoolArray, Run
from c4.replay._cache import RunSignals, load_signals, stack_signals
from c4.replay._candidates import filled_predictions
from c4.replay._grid import at_exit
from c4.replay._replay import Grader
from c4.replay._signals import NONE, Ints, Signals
from c4.tasks import Family, get_task


@dataclass(frozen=True)
class Cohort:
    """Some trajectories of one run, ready to be asked about any exit step."""

    run: Run
    signals: RunSignals
    unsafe_code: bool = False

    def __len__(self) -> int:
        return len(self.signals)

    @property
    def name(self) -> str:
        return cohort_name(self.run)

    def steps_at(self, exits: Ints) -> Ints:
        """Forward passes spent; all of the recorded where the gate never fires. (settings, n)"""
        return self._at(self.signals.signals.step, exits)

    def same_at(self, exits: Ints) -> BoolArray:
        """Whether the answer is the full decode's. (settings, n)"""
        signals = self.signals.signals
        return self._at(signals.answer == signals.last("answer"), exits)

    def correct_at(self, exits: Ints) -> BoolArray:
        """Whether the answer is right. (settings, n)"""
        if get_task(self.run.task).family is Family.CODE:
            return self._run_programs(exits)
        return self._at(self._right, exits)

    def _at(self, values: npt.NDArray[Any], exits: Ints) -> npt.NDArray[Any]:
        return at_exit(values, exits, self.signals.signals.steps)

    @cached_property
    def _right(self) -> BoolArray:
        """Whether the answer at each step is the target. (n, T)"""
        targets = {row.trajectory: row.target for row in self.run.rows()}
        number = [
            answers.index(targets[index]) if targets[index] in answers else NONE - 1
            for index, answers in zip(
                self.signals.trajectory.tolist(), self.signals.answers, strict=True
            )
        ]
        return self.signals.signals.answer == np.array(number, dtype=np.int32)[:, None]

    def _run_programs(self, exits: Ints) -> BoolArray:
        """Grades of programs: every distinct text of the exits asked for is run once."""
        steps = self.steps_at(exits)  # (settings, n)
        place = {index: i for i, index in enumerate(self.signals.trajectory.tolist())}
        grader = Grader(get_task(self.run.task), self.unsafe_code)
        correct = np.zeros(steps.shape, dtype=np.bool_)
        for trajectory in self.run:
            i = place.get(trajectory.row.trajectory)
            if i is None:
                continue
            filled = filled_predictions(trajectory.cells.token, trajectory.cells.masked)
            for step in np.unique(steps[:, i]).tolist():
                text = self.run.vocabulary.text(filled[step - 1].tolist())
                correct[steps[:, i] == step, i] = grader.correct(trajectory.row, text)
        return correct


def split_cohorts(
    runs: Sequence[Run], pool_size: int, *, unsafe_code: bool = False
) -> tuple[list[Cohort], list[Cohort]]:
    """The pool, trajectories below `pool_size` of each run; and the held-out ones, all others."""
    _refuse_twins(runs)
    pool, held_out = [], []
    for run in runs:
        signals = stack_signals(list(load_signals(run)))
        in_pool = signals.trajectory < pool_size
        if not in_pool.any():
            shape = run.shape
            raise RunError(
                f"{run.folder} has no trajectory below {pool_size} to calibrate on; record them "
                f"with: c4 record --task {run.task} --model {run.model} --skip 0 --n {pool_size} "
                f"--gen-length {shape.length} --steps {shape.steps} --block-length {shape.block}"
            )
        pool.append(Cohort(run, choose(signals, np.flatnonzero(in_pool)), unsafe_code))
        if not in_pool.all():
            held_out.append(Cohort(run, choose(signals, np.flatnonzero(~in_pool)), unsafe_code))
    return pool, held_out


def cohort_name(run: Run) -> str:
    """The task, and the method if it is not the full decode that was recorded."""
    return run.task if run.method == "baseline" else f"{run.task} ({run.method})"


def _refuse_twins(runs: Sequence[Run]) -> None:
    """A setting is chosen for one recording of each task: two would share a column."""
    folders: dict[str, Path] = {}
    for run in runs:
        name = cohort_name(run)
        if name in folders:
            raise RunError(
                f"{folders[name]} and {run.folder} are both of {name}; calibrate on one of "
                "them: --model NAME, or --runs with a folder that holds only one"
            )
        folders[name] = run.folder


def choose(signals: RunSignals, rows: Collection[int]) -> RunSignals:
    """Some of the trajectories."""
    index = np.array(list(rows))
    return RunSignals(
        signals.trajectory[index],
        Signals(**{s.name: getattr(signals.signals, s.name)[index] for s in fields(Signals)}),
        [signals.candidates[i] for i in index],
        [signals.answers[i] for i in index],
    )
