"""Splitting recordings into a pool, to choose a gate's setting on, and a held-out rest."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np
import polars as pl

from c4.errors import RunError
from c4.errors.text import counted
from c4.gates.calibrations import FrozenSetting, PoolShare
from c4.gates.own_signals import NO_SIGNALS
from c4.gates.registry import GateKind, gate_signals
from c4.gates.run_signals import RunSignals, load_signals, stack_signals
from c4.replay.decisions import split_decisions
from c4.replay.pools import (
    SET_ASIDE,
    Pools,
    RunSubset,
    choose,
    pool_size,
    recording_name,
)
from c4.store.locations import Location
from c4.store.runs import Run

FIRST = 40
"""Trajectories to choose on if none are set aside; a third if there are fewer than 120."""


class SplitRule(StrEnum):
    """How the trajectories to choose on are found in a run."""

    SET_ASIDE = "set-aside"  # the examples that the task sets aside, as far as recorded
    FIRST = "first-of-recording"  # none of them was recorded: the first of what is there
    BELOW = "below"  # those numbered below what the user said


@dataclass(frozen=True)
class RunSplit:
    """A run split into a pool, to choose a setting on, and a held-out part, to try it on."""

    rule: SplitRule
    pool: RunSubset
    held_out: RunSubset | None
    """None if the whole run is in the pool."""

    @property
    def name(self) -> str:
        return self.pool.name

    @property
    def share(self) -> PoolShare:
        """What tables and figures need to know about the pool."""
        trajectories = frozenset(self.pool.signals.trajectory.tolist())
        return PoolShare(dict(self.pool.run.manifest.identity), trajectories)

    @property
    def beyond_set_aside(self) -> int:
        """Number of examples in the pool that the task does not set aside."""
        return len(self.share.trajectories - SET_ASIDE.of(self.pool.run))

    @property
    def summary(self) -> dict[str, Any]:
        """The split in numbers, as calibration files keep it."""
        held_out = 0 if self.held_out is None else len(self.held_out)
        return {"rule": str(self.rule), "pool": len(self.pool), "held_out": held_out}

    @property
    def statement(self) -> str:
        """A line that says how the run was split."""
        numbers = self.pool.signals.trajectory
        held_out = self.summary["held_out"] or "none"
        return (
            f"{self.name}: {self._reason} ({numbers.min()} to {numbers.max()}), {held_out} held out"
        )

    @property
    def _reason(self) -> str:
        n, aside = len(self.pool), pool_size(self.pool.run)
        if self.rule is SplitRule.SET_ASIDE:
            return f"chosen on {n} of the {aside} examples set aside for calibration"
        if self.rule is SplitRule.BELOW:
            return f"chosen on the {counted(n, 'trajectory')} that --pool names"
        none = "no example set aside for calibration is recorded"
        none = none if aside else "its examples are all for evaluation"
        return f"{none}; chosen on the first {n} of {len(self.pool.run)}"


def split_runs(
    runs: Sequence[Run],
    below: int | None = None,
    *,
    gate: GateKind | None = None,
    unsafe_code: bool = False,
    note: Callable[[str], None] = lambda task: None,
) -> list[RunSplit]:
    """Split each run into its pool and the trajectories that are in no pool of these runs.

    Args:
        below: the pool is what is numbered below this; if None, it is what the task sets aside,
            or, where none of that was recorded, the first of what there is.
        gate: whose signals are read too, if it names signals of its own.
        note: told the task of every run that has been read, for people who wait.
    """
    _refuse_twins(runs)
    own = gate_signals(gate) if gate else NO_SIGNALS
    chosen = [_choose_pool(run, sorted(run.indices), below) for run in runs]
    signals = []
    for run in runs:
        signals.append(stack_signals(list(load_signals(run, own=own))))
        note(run.task_name)
    pools = Pools(
        [
            PoolShare(run.manifest.identity, numbers)
            for run, (_, numbers) in zip(runs, chosen, strict=True)
        ]
    )
    splits = []
    for run, its, (rule, numbers) in zip(runs, signals, chosen, strict=True):
        others = set(its.trajectory.tolist()) - pools.chosen_on(run.manifest.identity)
        pool = RunSubset(run, _numbered(its, numbers), unsafe_code)
        held_out = RunSubset(run, _numbered(its, others), unsafe_code) if others else None
        splits.append(RunSplit(rule, pool, held_out))
    return splits


def _choose_pool(
    run: Run, numbers: Sequence[int], below: int | None
) -> tuple[SplitRule, frozenset[int]]:
    """The trajectories of a run to choose on, and by which rule."""
    size = pool_size(run) if below is None else below
    chosen = frozenset(number for number in numbers if number < size)
    if chosen:
        return SplitRule.SET_ASIDE if below is None else SplitRule.BELOW, chosen
    if below is not None:
        raise RunError(
            f"{run.folder} has no trajectory below {size} to calibrate on; leave out --pool to "
            f"split what there is, or record them with: {_record_command(run, size)}"
        )
    if len(numbers) < 2:
        raise RunError(
            f"{run.folder} has {'a single' if numbers else 'no'} trajectory: it takes one to "
            f"choose a setting and one to try it; record more with: {_record_command(run, FIRST)}"
        )
    first = min(FIRST, max(1, len(numbers) // 3))
    return SplitRule.FIRST, frozenset(numbers[:first])


def _record_command(run: Run, n: int) -> str:
    """The command that records the first examples in a run's shape."""
    shape = run.shape
    return (
        f"c4 record --task {run.task_name} --model {run.model} --skip 0 --n {n} "
        f"--gen-length {shape.length} --steps {shape.budget} --block-length {shape.block_length}"
    )


def _numbered(signals: RunSignals, numbers: Collection[int]) -> RunSignals:
    """The trajectories with these numbers."""
    return choose(signals, np.flatnonzero(np.isin(signals.trajectory, list(numbers))))


def _refuse_twins(runs: Sequence[Run]) -> None:
    """Refuse two recordings of one task, because a setting is chosen on one of each."""
    folders: dict[str, Location] = {}
    for run in runs:
        name = recording_name(run)
        if name in folders:
            raise RunError(
                f"{folders[name]} and {run.folder} are both of {name}; calibrate on one of "
                "them: --model NAME, or --runs with a folder that holds only one"
            )
        folders[name] = run.folder


def split_calibrated(decisions: pl.DataFrame, frozen: FrozenSetting, run: Run) -> pl.DataFrame:
    """The decisions, with pool and held-out told apart if the setting was chosen on this run."""
    pool = Pools(frozen.pool).chosen_on(run.manifest.identity)
    return split_decisions(decisions, frozen.label, pool) if pool else decisions
