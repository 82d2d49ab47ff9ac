"""Runs in a notebook: open, show, replay and draw them."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import PurePath
from typing import Any

import polars as pl

from c4._decisions import Decisions
from c4._gates import name_gates
from c4._html import facts_table, frame_table, text_block
from c4.analysis import phase_table, stabilization_table, text_table, trace_table
from c4.analysis.signal_table import signal_table
from c4.errors import ConfigError, RunError, unknown_name
from c4.errors.text import visible_line
from c4.gates import Gate, OwnSignal
from c4.gates.candidates import filled_predictions
from c4.replay import replay
from c4.store.locations import Location, parse_location
from c4.store.runs import Run as StoredRun
from c4.store.runs import Trajectory as StoredTrajectory
from c4.store.runs import find_run, find_runs, open_run, readable_runs
from c4.store.storage import folder_exists
from c4.store.summary import RunSummary, summarise
from c4.tasks import AnswerReading, find_task
from c4.tasks.reading.extractors import find_style
from c4.tasks.registry import names_task

GateLike = Gate | type[Gate] | str
"""A gate, its class, or its name."""
RunLike = StoredRun | str | Location
"""A run or its folder."""
ReadingLike = AnswerReading | str | None
"""A reading, or the name of an extractor."""
LONGEST = 40
"""Maximum number of characters of an answer in a repr."""
LISTED = ("model", "task", "method", "source", "n", "accuracy", "steps", "saving")


@dataclass(frozen=True, repr=False)
class Trajectory(StoredTrajectory):
    """One decode of a run: its `row`, its `cells`, its `steps`, and the text at any step."""

    run: "Run"

    @property
    def number(self) -> int:
        """The example's number within its task."""
        return self.row.trajectory

    @property
    def steps(self) -> pl.DataFrame:
        """Signals of the trajectory, one row per step, with the columns of `Run.signals`."""
        return self.run.signals.filter(pl.col("trajectory") == self.number)

    def text_at(self, step: int) -> str:
        """Return the text after a final fill at a step, counted from 1."""
        if not 1 <= step <= self.row.steps:
            raise ConfigError(f"trajectory {self.number} has steps 1 to {self.row.steps}")
        filled = filled_predictions(self.cells.token, self.cells.masked)
        return self.run.text(filled[step - 1].tolist())

    @property
    def outcome(self) -> str:
        """Verdict as one word: right, wrong, no_answer and so on, or ungraded."""
        return self.row.verdict or "ungraded"

    def __repr__(self) -> str:
        answer = self.row.answer or ""
        cut = answer if len(answer) <= LONGEST else f"{answer[: LONGEST - 1]}…"
        found = f"answer {cut!r}" if self.row.answer is not None else "no answer"
        told = f"{self.number} of {self.run.task_name}: {found}, {self.outcome}, {self._cost}"
        return f"<Trajectory {visible_line(told)}>"

    def _repr_html_(self) -> str:
        facts = {"answer": self.row.answer, "target": self.row.target, "verdict": self.outcome}
        title = f"trajectory {self.number} of {self.run.task_name}, {self._cost}"
        blocks = text_block("prompt", self.row.prompt) + text_block("text", self.row.text)
        return facts_table(title, facts) + blocks

    @property
    def _cost(self) -> str:
        return f"{self.row.steps} steps of {self.row.budget}"


class Run(StoredRun):
    """A run on disk: one model, one task, one method. Iterating gives its trajectories.

    Figures can draw every frame that a run returns.
    """

    def replay(
        self, *gates: GateLike | Sequence[GateLike], unsafe_code: bool = False, **named: GateLike
    ) -> Decisions:
        """Replay gates and return their decisions, one row per trajectory and gate.

        Args:
            gates: gates, classes, names, or lists of them; names use the paper's settings for the
                task. The label of `CVEE(tau=0.8)` is `cvee,tau=0.8`.
            unsafe_code: grade programs even if they cannot be isolated.
            named: gates with labels of your own: `run.replay(strict=CVEE(tau=0.9))`.
        """
        chosen = name_gates(self.task, gates, named)
        return Decisions(pl.concat(replay(self, chosen, unsafe_code=unsafe_code)))

    @cached_property
    def signals(self) -> pl.DataFrame:
        """Signals that gates read, one row per trajectory and step."""
        return signal_table(self)

    def signals_with(self, *more: str | OwnSignal) -> pl.DataFrame:
        """Return `signals` with additional signals of your own, given as functions or names."""
        return signal_table(self, more)

    @property
    def stabilization(self) -> pl.DataFrame:
        """Steps at which each answer settled and first appeared, for `stabilization_figure`."""
        return stabilization_table(self)

    def phases(self, *gates: GateLike, **named: GateLike) -> pl.DataFrame:
        """Compare exit progress with stabilization; takes gates like `replay`, grades nothing."""
        return phase_table(self, name_gates(self.task, gates, named))

    def trace(
        self, number: int, *gates: GateLike, signals: Sequence[str] = (), **named: GateLike
    ) -> pl.DataFrame:
        """Return the signals of one trajectory that gates use at every step, for `trace_figure`.

        Args:
            signals: names of further signals, each with its own column and panel.
        """
        return trace_table(self, number, name_gates(self.task, gates, named), signals)

    def texts(self, number: int, *gates: GateLike, **named: GateLike) -> pl.DataFrame:
        """Return one trajectory's tokens at each gate's exit, for `text_figure`."""
        return text_table(self, number, name_gates(self.task, gates, named))

    def __iter__(self) -> Iterator[Trajectory]:
        for found in super().__iter__():
            yield Trajectory(**vars(found), run=self)

    def trajectory(self, index: int) -> Trajectory:
        """Return one trajectory by its number; `indices` lists the numbers."""
        return Trajectory(**vars(super().trajectory(index)), run=self)

    @cached_property
    def summary(self) -> RunSummary:
        """Summary of the run in one row."""
        return summarise(self.folder, reading=self.reading)

    def _repr_html_(self) -> str:
        identity, shape = self.manifest.identity, self.shape
        facts = _facts(self) | {
            "shape": f"{shape.length} positions, {shape.budget} steps, "
            f"blocks of {shape.block_length}",
            "cells": "kept" if self.has_cells else "not kept",
            "dtype": identity["dtype"],
            "folder": self.folder,
        }
        return facts_table(f"{self.task_name} by {self.model}, {self.method}", facts)


def _facts(run: Run) -> dict[str, Any]:
    """Return the displayed columns of a run's summary."""
    facts = {name: asdict(run.summary)[name] for name in LISTED}
    shares = [name for name in ("accuracy", "saving") if facts[name] is not None]
    return facts | {name: f"{facts[name]:.1%}" for name in shares}


class Runs(list[Run]):
    """List of runs, displayed as a table."""

    def __repr__(self) -> str:
        return "\n".join([f"<Runs, {len(self)}>", *(f"  {run!r}" for run in self)])

    def _repr_html_(self) -> str:
        return frame_table(pl.DataFrame([_facts(run) for run in self], infer_schema_length=None))


def open(  # noqa: A001
    path: RunLike, reading: ReadingLike = None, *, task: str | None = None
) -> Run:
    """Open one run by its folder, or by a parent folder that contains no other run.

    Args:
        reading: how to read answers, or the name of an extractor as in `--reading`; by default as
            in the commands.
        task: a task defined by your own code, as in `--task`: my_task.py:TASK. The code is
            executed.
    """
    tasks = [] if task is None else [find_task(task)]
    if isinstance(path, StoredRun):
        reading = path.reading if reading is None else _as_reading(reading)
        return Run(path.folder, reading, [*tasks, *path.tasks])
    if not isinstance(path, str | PurePath):
        raise ConfigError(f"c4.open takes the folder of a run, not {path!r}")
    folder = find_run(path, or_all=f", or open all with: c4.open_all({str(path)!r})")
    return _opened(open_run(folder, _as_reading(reading), tasks))


def open_all(
    root: str | Location = "runs",
    *,
    task: str | None = None,
    model: str | None = None,
    method: str | None = None,
    reading: ReadingLike = None,
) -> Runs:
    """Open all runs below a folder, optionally only those of one task, model or method.

    Args:
        task: name of the task; for your own code, as in `--task`. That code is executed.
    """
    if not folder_exists(parse_location(root)):
        raise RunError(f"{root}: no such folder")
    named = [find_task(task)] if task is not None and names_task(task) else []
    found = readable_runs(find_runs(root), _as_reading(reading), named)
    runs = [_opened(run) for run in found]
    wanted = {"task": named[0].name if named else task, "model": model, "method": method}
    for name, value in wanted.items():
        if value is not None:
            attribute = "task_name" if name == "task" else name
            known = dict.fromkeys(getattr(run, attribute) for run in runs)
            if value not in known:
                raise unknown_name(f"{name} among these runs", value, known)
            runs = [run for run in runs if getattr(run, attribute) == value]
    return Runs(runs)


def as_runs(runs: RunLike | Sequence[RunLike]) -> list[StoredRun]:
    """Open the given runs: one or several, as runs or folders."""
    given: Sequence[Any] = [runs] if isinstance(runs, StoredRun | str | PurePath) else runs
    if not given:
        raise ConfigError("no runs are given; open some with: c4.open_all('runs')")
    return [run if isinstance(run, StoredRun) else open(run) for run in given]


def _as_reading(reading: ReadingLike) -> AnswerReading | None:
    return AnswerReading(find_style(reading)) if isinstance(reading, str) else reading


def _opened(run: StoredRun) -> Run:
    return Run(run.folder, run.reading, run.tasks)
