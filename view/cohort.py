"""All trajectories of a run: where gates stop them, and the resulting accuracy and saving."""

from collections.abc import Sequence
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import polars as pl

from c4.analysis.stabilization import settled_by, settled_step
from c4.gates.candidates import filled_predictions
from c4.gates.run_signals import load_signals, stack_signals
from c4.gates.signals import Ints, are_premature, stabilization_step
from c4.replay.decisions import summarise_decisions
from c4.replay.exits import RunSubset, ask_gates, at_exit
from c4.store.runs import Trajectory
from c4.view.menu import GateMenu, Settings

if TYPE_CHECKING:
    from c4.view.viewer import RunCache

UNKNOWN, WRONG, RIGHT = -1, 0, 1
"""Grades of a text; a program that has not been run yet is `UNKNOWN`."""
KEPT_EXITS = 64
"""Number of settings whose exits are cached, because some gates read all cells to find them."""


class Cohort:
    """The trajectories of one run, with the signals that gates decide on."""

    def __init__(self, cache: "RunCache", menu: GateMenu) -> None:
        self.cache = cache
        self.menu = menu
        self.signals = stack_signals(list(load_signals(cache.run, own=cache.own)))
        self.settled: Ints = stabilization_step(self.signals.signals)
        self._subset = RunSubset(cache.run, self.signals)
        self._exits = lru_cache(KEPT_EXITS)(self._find_exits)

    @property
    def steps(self) -> Ints:
        """Number of steps of each trajectory. (n,)"""
        return self.signals.signals.steps

    def exits(self, name: str, settings: Settings) -> Ints:
        """Return the step at which a gate stops each trajectory; 0 if it never fires. (n,)"""
        return self._exits(name, tuple(sorted(settings.get(name, {}).items())))

    def _find_exits(self, name: str, changes: tuple[tuple[str, str], ...]) -> Ints:
        gate = self.menu.make_one(name, self.cache.run.task, {name: dict(changes)})
        return ask_gates({name: gate}, self.signals, self.cache.run.cells())[name]

    def premature(self, exits: Ints) -> list[bool | None]:
        """Return whether each exit came too early; None if the answer never settles."""
        return are_premature(exits, self.settled, self.steps)

    def summary(self, name: str, settings: Settings) -> dict[str, Any]:
        """Return a gate's results on the run, as `c4 replay` summarises them."""
        exits = self.exits(name, settings)
        ends = np.zeros_like(exits)
        frame = pl.DataFrame(
            {
                "correct": self._correct(exits),
                "full_correct": self._correct(ends),
                "steps": self._subset.steps_at(exits[None])[0],
                "full_steps": self.steps,
                "fired": exits > 0,
                "premature": self.premature(exits),
                "identical": self._subset.same_at(exits[None])[0],
            },
            schema_overrides=dict.fromkeys(("correct", "full_correct", "premature"), pl.Boolean()),
        )
        run = self.cache.run
        frame = frame.with_columns(
            model=pl.lit(run.model),
            task=pl.lit(run.task_name),
            method=pl.lit(run.method),
            gate=pl.lit(name),
            split=pl.lit(None),
            budget=pl.lit(run.shape.budget),
        )
        (found,) = summarise_decisions(frame).to_dicts()
        return found

    def _correct(self, exits: Ints) -> list[bool | None]:
        """Return whether the text at each exit is right; None if it is not graded."""
        if self.cache.grader.by_form:
            return self._subset.grades_at(exits[None])[0][0].tolist()
        known = at_exit(self._known, exits[None], self.steps)[0]
        return [None if value == UNKNOWN else value == RIGHT for value in known.tolist()]

    @cached_property
    def _known(self) -> npt.NDArray[np.int8]:
        """Grade of the text at every step. (n, T)

        A program is `UNKNOWN` unless it was run before.
        """
        known = np.full(self.signals.signals.step.shape, UNKNOWN, dtype=np.int8)
        for i, recorded in enumerate(self.cache.run):
            known[i, : recorded.row.steps] = self._worth(recorded)
        return known

    def _worth(self, recorded: Trajectory) -> list[int]:
        """Return the grade of the text at each step of a trajectory."""
        filled = filled_predictions(recorded.cells.token, recorded.cells.masked)
        worth: list[int] = []
        for t, ids in enumerate(filled):
            if t and (ids == filled[t - 1]).all():
                worth.append(worth[-1])
            else:
                correct = self.cache.grader.correct(recorded.row, ids.tolist())
                worth.append(UNKNOWN if correct is None else RIGHT if correct else WRONG)
        return worth

    def learn(self, index: int) -> None:
        """Update the grades of a trajectory after one of its programs has been run."""
        if "_known" in vars(self):
            recorded = self.cache.trajectory(index)
            i = self.signals.trajectory.tolist().index(index)
            self._known[i, : recorded.row.steps] = self._worth(recorded)

    def settling(self) -> dict[str, Any]:
        """Return each answer's stabilization step, or None, and the run's s_0.5 and s_0.9."""
        settled = settled_step(self.signals.signals)
        progress = settled / self.cache.run.shape.budget
        return {
            "trajectory": self.signals.trajectory.tolist(),
            "steps": self.steps.tolist(),
            "stabilization": settled.to_list(),
            "s50": settled_by(progress, 0.5),
            "s90": settled_by(progress, 0.9),
        }


def cohort_message(
    cohort: Cohort, gates: Sequence[str], settings: Settings, *, with_points: bool
) -> dict[str, Any]:
    """Return the results of gates on a run and, for plots, the exits of each trajectory."""
    found: dict[str, Any] = {
        "run": cohort.cache.describe(),
        "summaries": {name: cohort.summary(name, settings) for name in gates},
    }
    if with_points:
        found |= cohort.settling()
        stops = {name: cohort.exits(name, settings) for name in gates}
        found["gates"] = {
            name: {"exit": exits.tolist(), "premature": cohort.premature(exits)}
            for name, exits in stops.items()
        }
    return found
