"""All runs below a folder, as data frames that are computed once, on demand."""

import json
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import polars as pl

from c4.analysis.blocks import block_usage, time_shares
from c4.analysis.calibration_table import calibration_table, readable_calibrations
from c4.analysis.cohorts import cohort_key, cohort_table, held_out
from c4.analysis.outcomes import (
    DECODED,
    OUTCOMES,
    best_source,
    decoded_outcomes,
    method_totals,
    replayed_outcomes,
)
from c4.analysis.paper_names import in_order, method_kind, method_typed
from c4.analysis.phases import GATE_SIGNALS, PHASES, gate_signals, phase_table
from c4.analysis.stabilization import SETTLING, stabilization_table
from c4.analysis.sweeps import h_sweep, of_sweeps, wino_gates
from c4.analysis.traces import TEXTS, TRACE, telling_trajectory, text_table, trace_table
from c4.errors import ConfigError, unknown_name
from c4.gates.calibration_files import FrozenSetting, load_calibration
from c4.gates.gate import Gate
from c4.gates.registry import REGISTRY as GATE_NAMES
from c4.gates.registry import find_gate
from c4.replay.pools import Pools
from c4.replay.selection import GateChoice
from c4.store.labels import BASELINE, label_under
from c4.store.locations import Location, resolve_location
from c4.store.runs import Run, find_recorded_tasks, find_runs, readable_runs, with_known_task
from c4.store.timings import read_timings
from c4.tasks import AnswerReading

log = logging.getLogger(__name__)

COMPARED_GATES = ("prophet", "sched", "cvee")
"""The gates that figures compare by default."""


class Library:
    """The runs, timings and calibrations below a folder, or a selection of them.

    Reads one run at a time and keeps only the frames.
    """

    def __init__(
        self,
        root: Location,
        *,
        tasks: Sequence[str] | None = None,
        model: str | None = None,
        gates: Sequence[str] | GateChoice = COMPARED_GATES,
        methods: Sequence[str] | None = None,
        trajectory: int | None = None,
        signals: Sequence[str] = (),
        calibrations: Sequence[Location] | None = None,
        reading: AnswerReading | None = None,
        unsafe_code: bool = False,
        note: Callable[[str], None] = lambda text: None,
    ) -> None:
        """Select what to read; only the names of recorded tasks are looked up now.

        Args:
            gates: gates to replay over the recordings.
            methods: methods to show, by name or label; all if None.
            trajectory: number of the trajectory for `trace` and `texts`; None for the default of
                `telling`.
            signals: signals of that trajectory to show besides those of CVEE and Prophet.
            calibrations: files of `c4 calibrate` to report on; None for those in the current folder
                and the root. Examples that any of them used count as pool for every method.
            reading: how answers are read; the default reading if None.
            note: progress callback, called with a message before each run is read.
        """
        self.root = root
        self.named = list(find_recorded_tasks(tasks or (), root).values())
        self.tasks = [task.name for task in self.named]
        self.model = model
        self.choice = gates if isinstance(gates, GateChoice) else GateChoice(gates)
        self.gate_names = self.choice.labels
        self.methods = methods
        self.trajectory = trajectory
        self.signals = signals
        self._calibrations = calibrations
        self.reading = reading or AnswerReading()
        self.unsafe_code = unsafe_code
        self.note = note

    def wants(self, model: str, task: str) -> bool:
        return (self.model in (None, model)) and (not self.tasks or task in self.tasks)

    @cached_property
    def all_runs(self) -> list[Run]:
        """Every run that is not empty, of all models and tasks."""
        found = readable_runs(find_runs(self.root), self.reading, self.named)
        found = with_known_task(found, self.tasks)
        runs = [run for run in found if len(run)]
        outdated = {run.folder for run in runs if not self.is_current(run.manifest.identity)}
        for folder in sorted(outdated):
            log.warning(
                "passed over: %s was made by an earlier version of its gate; decode again with "
                "--fresh",
                folder,
            )
        return [run for run in runs if run.folder not in outdated]

    def is_current(self, identity: Mapping[str, Any]) -> bool:
        """Whether a result was made by the current code of its gate, if the gate was chosen."""
        gate = identity["gate"] or {"name": None}
        return self._gate_hashes.get(gate["name"]) in (None, gate.get("source_sha256"))

    @cached_property
    def _gate_hashes(self) -> dict[str, str | None]:
        """Source hashes of the chosen gates, by canonical name; None for built-in gates."""
        names = self.choice.names
        return {GATE_NAMES.canonical(name): find_gate(name).source_sha256 for name in names}

    @cached_property
    def runs(self) -> list[Run]:
        """The runs of the requested models and tasks."""
        return [run for run in self.all_runs if self.wants(run.model, run.task_name)]

    @cached_property
    def full_decodes(self) -> list[Run]:
        """The recordings of full decodes, over which gates are replayed."""
        return [run for run in self.runs if run.is_baseline and run.has_cells]

    @cached_property
    def bench(self) -> pl.DataFrame:
        """The best timing of every method, per cohort.

        Prefers timings with a speedup, then those of the most decodes, then the newest.
        """
        frame = pl.DataFrame(read_timings(self.root))
        identities = [json.loads(identity) for identity in frame["identity"]]
        methods = [label_under(identity, self.reading) for identity in identities]
        current = [self.is_current(identity) for identity in identities]
        frame = frame.with_columns(
            cohort=pl.Series(map(cohort_key, identities), dtype=pl.String()),
            method=pl.Series(methods, dtype=pl.String()),
            timed=pl.format("{}×{}", "n", "passes"),
            cv=pl.when(pl.col("passes") > 1).then("cv"),  # one pass has no variation
        ).filter(pl.Series(current, dtype=pl.Boolean()))
        worth = [pl.col("speedup").is_not_null(), pl.col("n") * pl.col("passes")]
        frame = frame.sort(worth, maintain_order=True)
        return frame.unique(("cohort", "method"), keep="last", maintain_order=True)

    @cached_property
    def cohorts(self) -> pl.DataFrame:
        """Cohorts of the requested models and tasks, and which are shown. See `COHORTS`."""
        frame = cohort_table(self.all_runs, self.gate_names, self.pools)
        asked = [self.wants(*row) for row in frame.select("model", "task").iter_rows()]
        return frame.filter(pl.Series(asked, dtype=pl.Boolean()))

    def recordings(self, cohort: str) -> list[Run]:
        """Recordings of full decodes in a cohort."""
        return [r for r in self.full_decodes if cohort_key(r.manifest.identity) == cohort]

    @cached_property
    def main_runs(self) -> list[Run]:
        """Recordings of full decodes in the main cohorts."""
        main = self.cohorts.filter("main")["cohort"]
        return [run for cohort in main for run in self.recordings(cohort)]

    def gates(self, run: Run) -> dict[str, Gate]:
        """The gates with their settings for the run's family."""
        return self.choice.gates(run.task.family)

    @cached_property
    def settling(self) -> pl.DataFrame:
        """When held-out answers settle, in the main cohorts. See `SETTLING`."""
        read = self._per_run(
            "reading", self.main_runs, lambda r: stabilization_table(r, self.pools)
        )
        return self._shown(pl.concat([SETTLING.to_frame(), *read]))

    @cached_property
    def phases(self) -> pl.DataFrame:
        """Exits and stabilization of held-out trajectories. See `PHASES`."""
        read = self._per_run(
            "replaying", self.main_runs, lambda run: phase_table(run, self.gates(run), self.pools)
        )
        return self._shown(pl.concat([PHASES.to_frame(), *read]))

    @cached_property
    def gate_signals(self) -> pl.DataFrame:
        """Signals of held-out trajectories over progress and at exits. See `GATE_SIGNALS`."""
        frames = [GATE_SIGNALS.to_frame()]
        for cohort in self.cohorts.filter("main")["cohort"]:
            if runs := self.recordings(cohort):
                self.note(f"reading cells of {runs[0].model} {runs[0].task_name}")
                frames.append(gate_signals(runs, self.gates(runs[0]), self.pools))
        return in_order(pl.concat(frames))

    @cached_property
    def _sources(self) -> pl.DataFrame:
        """Outcomes of every method on every held-out example, from every source. See `OUTCOMES`."""
        decoded = self._per_run(
            "reading",
            self.runs,
            lambda run: decoded_outcomes(run, self.pools, unsafe_code=self.unsafe_code),
        )
        replayed = self._per_run(
            "replaying and grading",
            self.full_decodes,
            lambda run: self._replayed(run, self.gates(run)),
        )
        return self._shown(self._chosen(pl.concat([OUTCOMES.to_frame(), *decoded, *replayed])))

    @cached_property
    def outcomes(self) -> pl.DataFrame:
        """Outcomes of every method on held-out examples, from its best source. See `OUTCOMES`."""
        return best_source(self._sources)

    @cached_property
    def totals(self) -> pl.DataFrame:
        """Totals per method and shape, one row each."""
        return method_totals(self.outcomes)

    @cached_property
    def main_outcomes(self) -> pl.DataFrame:
        """Outcomes in each task's main cohort, without points of sweeps."""
        outcomes = self._of_main(self.outcomes)
        return outcomes.filter(~of_sweeps(outcomes))

    @cached_property
    def main_totals(self) -> pl.DataFrame:
        """Totals per method in the main cohorts, one row each."""
        return method_totals(self.main_outcomes)

    @cached_property
    def swept(self) -> pl.DataFrame:
        """Model, task and label of the points of sweeps in the main cohorts."""
        outcomes = self._of_main(self.outcomes)
        points = outcomes.filter(of_sweeps(outcomes)).select("model", "task", "method")
        return in_order(points.unique())

    @cached_property
    def blocks(self) -> pl.DataFrame:
        """Forward passes per block. See `BLOCKS`."""
        return block_usage(self.main_outcomes, self.main_totals)

    @cached_property
    def time_shares(self) -> pl.DataFrame:
        """Seconds per block of live decodes; replays have no timings. See `TIME_SHARES`."""
        live = self._of_main(self._sources.filter(pl.col("how") == DECODED))
        return time_shares(live.filter(~of_sweeps(live)), self.bench)

    @cached_property
    def h_sweep(self) -> pl.DataFrame:
        """Results of C⁴ under several values of H. See `H_SWEEP`."""
        outcomes = self._of_main(self.outcomes)
        return h_sweep(outcomes, method_totals(outcomes))

    @cached_property
    def wino_totals(self) -> pl.DataFrame:
        """Totals in the main cohorts, including CVEE's sweep over recorded steps of WINO."""
        recorded = [run for run in self.runs if run.method == "wino" and run.has_cells]
        swept = self._per_run(
            "sweeping", recorded, lambda run: self._replayed(run, wino_gates(run.task))
        )
        frame = self._shown(pl.concat([self._sources, *swept]))
        return method_totals(self._of_main(best_source(frame)))

    @cached_property
    def calibrations(self) -> pl.DataFrame:
        """Cost of calibrations. See `CALIBRATIONS`."""
        shown = self._found if self._calibrations is None else self._given
        return calibration_table(shown, self.runs)

    @cached_property
    def pools(self) -> Pools:
        """Examples that calibration may have seen, from the files given and found."""
        return Pools([share for frozen in (*self._found, *self._given) for share in frozen.pool])

    @cached_property
    def _found(self) -> list[FrozenSetting]:
        """Calibrations in the current folder and the root."""
        folders = sorted({Path.cwd(), resolve_location(self.root)}, key=str)
        return [frozen for folder in folders for frozen in readable_calibrations(folder)]

    @cached_property
    def _given(self) -> list[FrozenSetting]:
        """Calibrations that were given by path."""
        return [load_calibration(path) for path in self._calibrations or ()]

    @cached_property
    def trace(self) -> pl.DataFrame:
        """Signals of the `telling` trajectory by step; empty without recordings."""
        if self.telling is None:
            return TRACE.to_frame()
        run, index = self.telling
        return trace_table(run, index, self.gates(run), self.signals)

    @cached_property
    def texts(self) -> pl.DataFrame:
        """Buffer of the `telling` trajectory at each gate's exit; empty without recordings."""
        if self.telling is None:
            return TEXTS.to_frame()
        run, index = self.telling
        return text_table(run, index, self.gates(run), unsafe_code=self.unsafe_code)

    @cached_property
    def telling(self) -> tuple[Run, int] | None:
        """The requested trajectory, or by default the one that shows the most."""
        if self.trajectory is not None:
            return self._asked(self.trajectory)
        right = {
            (cohort_key(run.manifest.identity), row.trajectory)
            for run in self.main_runs
            for row in run.rows()
            if row.correct
        }
        chosen = telling_trajectory(self.phases, right)
        if chosen is None:
            return None
        cohort, index = chosen
        return next(run for run in self.recordings(cohort) if index in run.indices), index

    def _asked(self, index: int) -> tuple[Run, int] | None:
        """Find the run of a requested trajectory; an error if there are several models or tasks."""
        kinds = sorted({(run.model, run.task_name) for run in self.main_runs})
        if len(kinds) > 1:
            names = ", ".join(f"--model {model} --task {task}" for model, task in kinds)
            raise ConfigError(f"--trajectory {index}: several recordings match; add one of {names}")
        have = [run for run in self.main_runs if index in run.indices] or self.main_runs
        return (have[0], index) if have else None

    def _chosen(self, outcomes: pl.DataFrame) -> pl.DataFrame:
        """Keep the rows of the requested methods, their variants and the baseline."""
        if self.methods is None:
            return outcomes
        asked = {method_typed(name): name for name in self.methods}
        known = {label: {label, method_kind(label)} for label in outcomes["method"].unique()}
        for name in asked.keys() - set().union(*known.values()):
            raise unknown_name("method among these results", asked[name], sorted(known))
        wanted = {BASELINE, *asked}
        labels = [label for label, names in known.items() if names & wanted]
        return outcomes.filter(pl.col("method").is_in(labels))

    def _of_main(self, frame: pl.DataFrame) -> pl.DataFrame:
        return frame.filter(pl.col("cohort").is_in(self.cohorts.filter("main")["cohort"].to_list()))

    def _shown(self, frame: pl.DataFrame) -> pl.DataFrame:
        """Keep held-out rows, sorted; a trajectory that is in two folders counts once."""
        names = ("cohort", "method", "how", "gate", "trajectory")
        key = [name for name in names if name in frame.columns]
        frame = frame.unique(key, keep="first", maintain_order=True)
        return in_order(held_out(frame), "cohort", "trajectory")

    def _replayed(self, run: Run, gates: Mapping[str, Gate]) -> pl.DataFrame:
        return replayed_outcomes(run, gates, self.pools, unsafe_code=self.unsafe_code)

    def _per_run(
        self, doing: str, runs: Sequence[Run], read: Callable[[Run], pl.DataFrame]
    ) -> Iterator[pl.DataFrame]:
        """Read one frame per run, with a progress message before each."""
        for run in runs:
            self.note(f"{doing} {run.model} {run.task_name}")
            yield read(run)
