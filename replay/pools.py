"""Pools: the examples used for calibration, kept apart from the held-out examples."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np
import polars as pl

from c4.errors import RunError
from c4.errors.text import counted
from c4.gates.calibration_files import FrozenSetting, PoolShare
from c4.gates.own_signals import NO_SIGNALS
from c4.gates.registry import GateKind, gate_signals
from c4.gates.run_signals import load_signals, stack_signals
from c4.replay.decisions import Split
from c4.replay.exits import RunSubset, recording_name
from c4.store.runs import Run
from c4.tasks.examples import examples_set_aside

POOL_TASKS = ("mmlu", "gsm8k", "math")
"""Tasks of the paper's pool; calibration uses those that were recorded."""
FIRST = 40
"""Pool size if no set-aside example was recorded; a third if there are fewer than 120."""
OF_THE_EXAMPLES = ("task", "origin", "seed", "order")
"""Identity keys that must match for two runs to number the same problems alike."""


@dataclass(frozen=True)
class Pools:
    """Examples that calibration may have used.

    An example is the same problem for every model, shape and method, so an example used on one run
    counts as used on all of them.
    """

    shares: Sequence[PoolShare] = ()
    """Trajectories that were used to choose settings."""

    def of(self, run: Run) -> frozenset[int]:
        """Numbers of the examples of a run that are set aside or were used to choose a setting."""
        return frozenset(range(_pool_size(run))) | self.chosen_on(run.manifest.identity)

    def chosen_on(self, identity: Mapping[str, Any]) -> frozenset[int]:
        """Numbers of the examples used to choose a setting, on any run with the same examples."""
        alike = (
            share.trajectories
            for share in self.shares
            if all(share.identity.get(key) == identity.get(key) for key in OF_THE_EXAMPLES)
        )
        return frozenset().union(*alike)


SET_ASIDE = Pools()
"""Only the examples that tasks set aside."""


def _pool_size(run: Run) -> int:
    """Number of examples set aside for calibration; 0 for a user's own file."""
    return examples_set_aside(run.task, run.manifest.identity["source"])


class SplitRule(StrEnum):
    """How the pool of a run is chosen."""

    SET_ASIDE = "set-aside"  # the recorded examples that the task sets aside
    FIRST = "first-of-recording"  # no set-aside example was recorded: the first recorded ones
    BELOW = "below"  # those numbered below a limit that the user gave


@dataclass(frozen=True)
class RunSplit:
    """A run split into a pool, to choose a setting, and a held-out part, to evaluate it."""

    rule: SplitRule
    pool: RunSubset
    held_out: RunSubset | None
    """None if the whole run is in the pool."""

    @property
    def name(self) -> str:
        return self.pool.name

    @property
    def share(self) -> PoolShare:
        """The run and the trajectories of the pool."""
        trajectories = frozenset(self.pool.signals.trajectory.tolist())
        return PoolShare(dict(self.pool.run.manifest.identity), trajectories)

    @property
    def beyond_set_aside(self) -> int:
        """Number of examples in the pool that the task does not set aside."""
        return len(self.share.trajectories - SET_ASIDE.of(self.pool.run))

    @property
    def summary(self) -> dict[str, Any]:
        """Rule and sizes of the split, as stored in calibration files."""
        held_out = 0 if self.held_out is None else len(self.held_out)
        return {"rule": str(self.rule), "pool": len(self.pool), "held_out": held_out}

    @property
    def statement(self) -> str:
        """One line that describes how the run was split."""
        n, aside = len(self.pool), _pool_size(self.pool.run)
        if self.rule is SplitRule.SET_ASIDE:
            reason = f"chosen on {n} of the {aside} examples set aside for calibration"
        elif self.rule is SplitRule.BELOW:
            reason = f"chosen on the {counted(n, 'trajectory')} that --pool names"
        else:
            none = "no example set aside for calibration is recorded"
            none = none if aside else "its examples are all for evaluation"
            reason = f"{none}; chosen on the first {n} of {len(self.pool.run)}"
        numbers, held_out = self.pool.signals.trajectory, self.summary["held_out"] or "none"
        return f"{self.name}: {reason} ({numbers.min()} to {numbers.max()}), {held_out} held out"


def split_runs(
    runs: Sequence[Run],
    below: int | None = None,
    *,
    gate: GateKind | None = None,
    unsafe_code: bool = False,
    note: Callable[[str], None] = lambda task: None,
) -> list[RunSplit]:
    """Split each run into its pool and the trajectories that are in none of these runs' pools.

    Args:
        below: the pool is the trajectories numbered below this; if None, the examples that the
            task sets aside or, if none of them was recorded, the first recorded ones.
        gate: a gate whose own signals, if it lists any, are loaded too.
        note: progress callback, called with the task of every run that has been read.
    """
    folders: dict[str, Any] = {}
    for run in runs:
        other = folders.setdefault(recording_name(run), run.folder)
        if other is not run.folder:
            raise RunError(
                f"{other} and {run.folder} are both of {recording_name(run)}; calibrate on one "
                "of them: --model NAME, or --runs with a folder that holds only one"
            )
    own = gate_signals(gate) if gate else NO_SIGNALS
    chosen = [_choose_pool(run, sorted(run.indices), below) for run in runs]
    pools = Pools(
        [
            PoolShare(run.manifest.identity, numbers)
            for run, (_, numbers) in zip(runs, chosen, strict=True)
        ]
    )
    splits = []
    for run, (rule, numbers) in zip(runs, chosen, strict=True):
        signals = stack_signals(list(load_signals(run, own=own)))
        note(run.task_name)
        others = set(signals.trajectory.tolist()) - pools.chosen_on(run.manifest.identity)
        pool, held_out = (
            RunSubset(
                run,
                signals.choose(np.flatnonzero(np.isin(signals.trajectory, list(part)))),
                unsafe_code,
            )
            for part in (numbers, others)
        )
        splits.append(RunSplit(rule, pool, held_out if others else None))
    return splits


def _choose_pool(
    run: Run, numbers: Sequence[int], below: int | None
) -> tuple[SplitRule, frozenset[int]]:
    """Choose the trajectories of a run's pool; return the rule applied and their numbers."""
    size = _pool_size(run) if below is None else below
    chosen = frozenset(number for number in numbers if number < size)
    if chosen:
        return SplitRule.SET_ASIDE if below is None else SplitRule.BELOW, chosen
    shape = run.shape
    command = (
        f"c4 record --task {run.task_name} --model {run.model} --skip 0 --n {below or FIRST} "
        f"--gen-length {shape.length} --steps {shape.budget} --block-length {shape.block_length}"
    )
    if below is not None:
        raise RunError(
            f"{run.folder} has no trajectory below {size} to calibrate on; leave out --pool to "
            f"split what there is, or record them with: {command}"
        )
    if len(numbers) < 2:
        raise RunError(
            f"{run.folder} has {'a single' if numbers else 'no'} trajectory: it takes one to "
            f"choose a setting and one to try it; record more with: {command}"
        )
    first = min(FIRST, max(1, len(numbers) // 3))
    return SplitRule.FIRST, frozenset(numbers[:first])


def split_calibrated(decisions: pl.DataFrame, frozen: FrozenSetting, run: Run) -> pl.DataFrame:
    """Fill in the `split` of a setting's decisions if it was chosen on examples of this run."""
    pool = Pools(frozen.pool).chosen_on(run.manifest.identity)
    if not pool:
        return decisions
    of_setting, in_pool = pl.col("gate") == frozen.label, pl.col("trajectory").is_in(list(pool))
    part = pl.when(in_pool).then(pl.lit(Split.POOL.value)).otherwise(pl.lit(Split.HELD_OUT.value))
    return decisions.with_columns(split=pl.when(of_setting).then(part).otherwise("split"))
