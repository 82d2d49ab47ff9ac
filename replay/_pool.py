"""The trajectories that a gate is calibrated on, and those it is then tried on."""

import logging
from collections.abc import Collection, Mapping, Sequence
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
from c4.replay._grader import Grader
from c4.replay._grid import at_exit
from c4.replay._signals import NONE, Ints, Signals
from c4.tasks import EMBEDDED_SOURCE, HUB_SOURCE, Family, get_task

log = logging.getLogger(__name__)


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
            values.index(targets[index]) if targets[index] in values else NONE - 1
            for index, values in zip(
                self.signals.trajectory.tolist(), self.signals.candidates, strict=True
            )
        ]
        return self.signals.signals.answer == np.array(number, dtype=np.int32)[:, None]

    def _run_programs(self, exits: Ints) -> BoolArray:
        """Grades of programs: every distinct text of the exits asked for is run once."""
        steps = self.steps_at(exits)  # (settings, n)
        place = {index: i for i, index in enumerate(self.signals.trajectory.tolist())}
        grader = Grader(self.run, self.unsafe_code)
        correct = np.zeros(steps.shape, dtype=np.bool_)
        for trajectory in self.run:
            i = place.get(trajectory.row.trajectory)
            if i is None:
                continue
            filled = filled_predictions(trajectory.cells.token, trajectory.cells.masked)
            for step in np.unique(steps[:, i]).tolist():
                ids = filled[step - 1].tolist()
                correct[steps[:, i] == step, i] = grader.correct(trajectory.row, ids)
        return correct


def pool_size(identity: Mapping[str, Any]) -> int:
    """How many of the first examples are set aside for calibration; none in files of users' own."""
    own_split = identity["source"] in (EMBEDDED_SOURCE, HUB_SOURCE)
    return get_task(identity["task"]).skip if own_split else 0


def split_cohorts(
    runs: Sequence[Run], size: int, *, unsafe_code: bool = False
) -> tuple[list[Cohort], list[Cohort]]:
    """The pool, trajectories below `size` of each run; and the held-out ones, all others."""
    _refuse_twins(runs)
    pool, held_out = [], []
    for run in runs:
        signals = stack_signals(list(load_signals(run)))
        in_pool = signals.trajectory < size
        if not in_pool.any():
            shape = run.shape
            raise RunError(
                f"{run.folder} has no trajectory below {size} to calibrate on; record them "
                f"with: c4 record --task {run.task} --model {run.model} --skip 0 --n {size} "
                f"--gen-length {shape.length} --steps {shape.steps} --block-length {shape.block}"
            )
        _warn_of_evaluation(run, signals.trajectory[in_pool].tolist())
        pool.append(Cohort(run, choose(signals, np.flatnonzero(in_pool)), unsafe_code))
        if not in_pool.all():
            held_out.append(Cohort(run, choose(signals, np.flatnonzero(~in_pool)), unsafe_code))
    return pool, held_out


def _warn_of_evaluation(run: Run, pool: Sequence[int]) -> None:
    """Say where a setting is chosen on what tables and figures will count as evaluation."""
    aside = pool_size(run.manifest.identity)
    counted = [index for index in pool if index >= aside]
    if not counted:
        return
    advice = (
        f"only the first {aside} are set aside for calibration: use --pool {aside}"
        if aside
        else "none are set aside for calibration: quote this setting's numbers on held-out rows of "
        "`c4 replay --config` alone, or choose it on other tasks with --task"
    )
    log.warning(
        "%s: %d pool trajectories (%d to %d) are evaluation examples to tables and figures; of "
        "this recording's examples %s",
        cohort_name(run),
        len(counted),
        min(counted),
        max(counted),
        advice,
    )


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
    )
