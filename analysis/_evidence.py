"""Everything that lies below a folder, as frames that are computed once, when asked for."""

from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path

import polars as pl

from c4.analysis._exits import GATE_SIGNALS, PHASES, gate_signals, phase_table
from c4.analysis._names import in_order
from c4.analysis._outcomes import (
    OUTCOMES,
    best_source,
    held_out,
    recorded_outcomes,
    replayed_outcomes,
)
from c4.analysis._stabilization import SETTLING, stabilization
from c4.record import Run, find_runs, open_run
from c4.replay import Gate, make_gate
from c4.tasks import get_task

COMPARED_GATES = ("prophet", "sched", "cvee")
"""What figures compare, unless told otherwise."""


class Evidence:
    """Recordings, live results and timings below a folder, or a part of them.

    One run is read at a time, and only what a number is made of is kept.
    """

    def __init__(
        self,
        root: Path,
        *,
        tasks: Sequence[str] | None = None,
        model: str | None = None,
        gates: Sequence[str] = COMPARED_GATES,
        unsafe_code: bool = False,
        note: Callable[[str], None] = lambda text: None,
    ) -> None:
        """Look what there is.

        Args:
            gates: what to replay over the recordings.
            note: told what is being read, for people who wait.
        """
        self.root = root
        self.tasks = tasks
        self.model = model
        self.gate_names = gates
        self.unsafe_code = unsafe_code
        self.note = note

    def wants(self, model: str, task: str) -> bool:
        return (self.model in (None, model)) and (not self.tasks or task in self.tasks)

    @cached_property
    def runs(self) -> list[Run]:
        """The recordings of full decodes."""
        runs = (open_run(folder) for folder in find_runs(self.root))
        return [run for run in runs if len(run) and self.wants(run.model, run.task)]

    def gates(self, run: Run) -> dict[str, Gate]:
        """The gates with the settings of the run's family."""
        family = get_task(run.task).family
        return {name: make_gate(name, family) for name in self.gate_names}

    @cached_property
    def settling(self) -> pl.DataFrame:
        """When answers settle. See `SETTLING`."""
        return in_order(self._per_run(SETTLING, "reading", stabilization), "trajectory")

    @cached_property
    def phases(self) -> pl.DataFrame:
        """Exits against stabilization, of examples that calibration has not seen."""
        frame = self._per_run(PHASES, "replaying", lambda run: phase_table(run, self.gates(run)))
        return in_order(held_out(frame), "trajectory")

    @cached_property
    def gate_signals(self) -> pl.DataFrame:
        """What gates saw. See `GATE_SIGNALS`."""
        frame = self._per_run(
            GATE_SIGNALS, "reading cells of", lambda run: gate_signals(run, self.gates(run))
        )
        return in_order(frame)

    @cached_property
    def outcomes(self) -> pl.DataFrame:
        """Every method on every held-out example, from the best source. See `OUTCOMES`."""
        recorded = self._per_run(OUTCOMES, "reading", recorded_outcomes)
        replayed = self._per_run(OUTCOMES, "replaying and grading", self._replayed)
        return best_source(held_out(pl.concat([recorded, replayed])))

    def _replayed(self, run: Run) -> pl.DataFrame:
        return replayed_outcomes(run, self.gates(run), unsafe_code=self.unsafe_code)

    def _per_run(
        self, schema: pl.Schema, doing: str, read: Callable[[Run], pl.DataFrame]
    ) -> pl.DataFrame:
        frames = [schema.to_frame()]
        for run in self.runs:
            self.note(f"{doing} {run.model} {run.task}")
            frames.append(read(run))
        return pl.concat(frames)
