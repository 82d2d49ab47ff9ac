"""Everything that lies below a folder, as frames that are computed once, when asked for."""

from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path

import polars as pl

from c4.analysis._blocks import block_usage, main_cohort, plain_methods, time_shares
from c4.analysis._calibrations import calibration_table, find_calibrations
from c4.analysis._exits import GATE_SIGNALS, PHASES, gate_signals, phase_table
from c4.analysis._names import in_order
from c4.analysis._outcomes import (
    OUTCOMES,
    best_source,
    held_out,
    live_outcomes,
    method_totals,
    recorded_outcomes,
    replayed_outcomes,
)
from c4.analysis._stabilization import SETTLING, stabilization
from c4.analysis._sweeps import h_sweep
from c4.analysis._traces import TEXTS, TRACE, telling_trajectory, text_table, trace_table
from c4.record import LiveRun, Run, find_live, find_runs, open_live, open_run, read_bench
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
        trajectory: int | None = None,
        calibrations: Sequence[Path] | None = None,
        unsafe_code: bool = False,
        note: Callable[[str], None] = lambda text: None,
    ) -> None:
        """Look what there is.

        Args:
            gates: what to replay over the recordings.
            trajectory: which to show alone; the most telling one if None.
            calibrations: files of `c4 calibrate`; those in this folder and the root if None.
            note: told what is being read, for people who wait.
        """
        self.root = root
        self.tasks = tasks
        self.model = model
        self.gate_names = gates
        self.trajectory = trajectory
        self._calibrations = calibrations
        self.unsafe_code = unsafe_code
        self.note = note

    def wants(self, model: str, task: str) -> bool:
        return (self.model in (None, model)) and (not self.tasks or task in self.tasks)

    @cached_property
    def runs(self) -> list[Run]:
        """The recordings of full decodes."""
        runs = (open_run(folder) for folder in find_runs(self.root))
        return [run for run in runs if len(run) and self.wants(run.model, run.task)]

    @cached_property
    def live(self) -> list[LiveRun]:
        """The results of methods that were run live."""
        runs = (open_live(folder) for folder in find_live(self.root))
        return [run for run in runs if self.wants(run.model, run.task)]

    @cached_property
    def bench(self) -> pl.DataFrame:
        """The newest timing of every method."""
        frame = pl.DataFrame(read_bench(self.root))
        asked = [self.wants(*row) for row in frame.select("model", "task").iter_rows()]
        return frame.filter(pl.Series(asked, dtype=pl.Boolean))

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
        live = [live_outcomes(run) for run in self.live]
        return best_source(held_out(pl.concat([recorded, replayed, *live])))

    @cached_property
    def totals(self) -> pl.DataFrame:
        """Every method and every shape in numbers."""
        return method_totals(self.outcomes)

    @cached_property
    def main_outcomes(self) -> pl.DataFrame:
        """The outcomes of plain methods in each task's main cohort."""
        return plain_methods(main_cohort(self.outcomes))

    @cached_property
    def blocks(self) -> pl.DataFrame:
        """Passes per block. See `BLOCKS`."""
        return block_usage(self.main_outcomes, method_totals(self.main_outcomes))

    @cached_property
    def time_shares(self) -> pl.DataFrame:
        """Seconds per block. See `TIME_SHARES`."""
        return time_shares(self.main_outcomes, self.bench)

    @cached_property
    def h_sweep(self) -> pl.DataFrame:
        """C⁴ under several H. See `H_SWEEP`."""
        outcomes = main_cohort(self.outcomes)
        return h_sweep(outcomes, method_totals(outcomes))

    @cached_property
    def calibrations(self) -> pl.DataFrame:
        """What calibrations cost. See `CALIBRATIONS`."""
        paths = self._calibrations
        if paths is None:
            folders = {Path.cwd(), self.root.resolve()}
            paths = [path for folder in sorted(folders) for path in find_calibrations(folder)]
        return calibration_table(paths, self.runs)

    @cached_property
    def trace(self) -> pl.DataFrame:
        """The telling trajectory, step by step; empty where there is no recording."""
        chosen = self._telling
        return TRACE.to_frame() if chosen is None else trace_table(*chosen, self.gates(chosen[0]))

    @cached_property
    def texts(self) -> pl.DataFrame:
        """Its buffer at every gate's exit; empty where there is no recording."""
        chosen = self._telling
        if chosen is None:
            return TEXTS.to_frame()
        gates = self.gates(chosen[0])
        return text_table(*chosen, gates, unsafe_code=self.unsafe_code)

    @cached_property
    def _telling(self) -> tuple[Run, int] | None:
        """The trajectory asked for, or the one on which gates disagree most."""
        if self.trajectory is not None and self.runs:
            return self.runs[0], self.trajectory
        chosen = telling_trajectory(self.phases)
        if chosen is None:
            return None
        model, task, index = chosen
        run = next(run for run in self.runs if (run.model, run.task) == (model, task))
        return run, index

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
