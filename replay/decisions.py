"""Replay: when would a gate have stopped, and what would the answer have been?"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Any

import numpy as np
import polars as pl

from c4.gates.candidates import filled_predictions
from c4.gates.gate import Gate, ask, exit_step, wants_cells
from c4.gates.own_signals import own_signals
from c4.gates.run_signals import RunSignals, load_signals
from c4.gates.signals import NONE, Ints, Signals, are_premature, stabilization_step
from c4.replay.grader import ReplayGrader
from c4.store.cells import Cells
from c4.store.parts import Part
from c4.store.rows import Row
from c4.store.runs import Run, Trajectory

DECISIONS = pl.Schema(
    {
        "model": pl.String(),
        "task": pl.String(),
        "trajectory": pl.Int32(),
        "method": pl.String(),  # whose steps were recorded, by its label
        "gate": pl.String(),
        "split": pl.String(),  # see `Split`; null where the gate was not chosen on the recording
        "fired": pl.Boolean(),  # before the budget was spent
        "steps": pl.Int32(),  # forward passes, the firing one included
        "full_steps": pl.Int32(),  # what the recorded decode took; a sampler's is not the budget
        "budget": pl.Int32(),
        "stabilization": pl.Int32(),  # s_j in steps; null where the answer never settles
        "premature": pl.Boolean(),  # fired before it; null where the answer never settles
        "candidate": pl.String(),  # what the gate read when it fired
        "answer": pl.String(),  # what a grader finds after the final fill
        "correct": pl.Boolean(),  # null where the machine failed to grade it
        "full_answer": pl.String(),
        "full_correct": pl.Boolean(),  # likewise
        "identical": pl.Boolean(),  # answer equal to the full decode's
        "text": pl.String(),  # after the final fill
    }
)
"""One row per trajectory and gate."""


class Split(StrEnum):
    """Whether a gate's setting was chosen on a trajectory."""

    POOL = "pool"  # the setting was chosen on it
    HELD_OUT = "held out"  # it was chosen on others of the recording


def replay(
    run: Run, gates: Mapping[str, Gate], *, unsafe_code: bool = False
) -> Iterator[pl.DataFrame]:
    """What every gate decides on every trajectory, part by part. See `DECISIONS`."""
    read = load_signals(run, own=own_signals(gates.values()))
    for part, signals in zip(run.parts, read, strict=True):
        yield _replay_part(run, part, signals, gates, ReplayGrader(run, unsafe_code))


class PartExits:
    """Where gates stop the trajectories of one part, and where their answers settle."""

    def __init__(self, gates: Mapping[str, Gate], signals: RunSignals) -> None:
        self.gates = dict(gates)
        self.read = signals
        self.signals = signals.signals
        self.settled = stabilization_step(self.signals)
        self._exits = {
            name: exit_step(ask(gate, self.signals))
            for name, gate in self.gates.items()
            if not wants_cells(gate)
        }

    def all(self, name: str) -> Ints:
        """The step at which a gate that reads no cells stops each trajectory. (n,)"""
        return self._exits[name]

    def at(self, name: str, i: int, cells: Cells) -> int:
        """The step at which a gate stops the i-th trajectory; 0 if it never fires."""
        if name in self._exits:
            return int(self._exits[name][i])
        return exit_with_cells(self.gates[name], self.signals, i, cells)


def exit_with_cells(gate: Gate, signals: Signals, i: int, cells: Cells) -> int:
    """The step at which a gate that wants cells stops the i-th trajectory; 0 if it never does."""
    steps = len(cells.token)
    alone = signals.map(lambda column: column[i, :steps])
    return int(exit_step(ask(gate, alone, cells.as_decoded())))


def gate_exits(
    run: Run, part: Part, signals: RunSignals, gates: Mapping[str, Gate]
) -> dict[str, Ints]:
    """The step at which each gate stops each trajectory of a part; 0 where it never fires. (n,)

    Cells are read only if a gate wants them.
    """
    known = dict(gates)
    exits = {
        name: np.zeros(len(signals), dtype=np.int32)
        if wants_cells(gate)
        else exit_step(ask(gate, signals.signals))
        for name, gate in known.items()
    }
    curious = {name: gate for name, gate in known.items() if wants_cells(gate)}
    if curious:
        for i, (_, cells) in enumerate(run.read_cells(part)):
            for name, gate in curious.items():
                exits[name][i] = exit_with_cells(gate, signals.signals, i, cells)
    return exits


def _replay_part(
    run: Run, part: Part, signals: RunSignals, gates: Mapping[str, Gate], grader: ReplayGrader
) -> pl.DataFrame:
    exits = PartExits(gates, signals)
    decisions = []
    for i, recorded in enumerate(run.read(part)):
        for name, outcome in decide(recorded, i, exits, grader).items():
            decisions.append({"gate": name, **outcome})
    frame = pl.DataFrame(decisions, schema_overrides=DECISIONS).with_columns(
        model=pl.lit(run.model),
        task=pl.lit(run.task_name),
        method=pl.lit(run.method),
        split=pl.lit(None),
    )
    return frame.select(pl.col(name).cast(kind) for name, kind in DECISIONS.items())


def decide(
    recorded: Trajectory, i: int, exits: PartExits, grader: ReplayGrader
) -> dict[str, dict[str, Any]]:
    """What every gate decides on one trajectory, which is the i-th of its part."""
    filled = filled_predictions(recorded.cells.token, recorded.cells.masked)
    outcomes = {}
    for name in exits.gates:
        exit_at = exits.at(name, i, recorded.cells)
        ids = filled[(exit_at or recorded.row.steps) - 1].tolist()
        outcomes[name] = _outcome(recorded.row, ids, exits, i, exit_at, grader)
    return outcomes


def _outcome(
    row: Row, ids: list[int], exits: PartExits, i: int, exit_at: int, grader: ReplayGrader
) -> dict[str, Any]:
    """The outcome of an exit at a step, which leaves these tokens; 0 means no exit."""
    steps, settled = exit_at or row.steps, int(exits.settled[i])
    (early,) = are_premature(np.array([exit_at]), exits.settled[[i]], np.array([row.steps]))
    values, signals = exits.read.candidates[i], exits.signals
    candidate = int(signals.candidate[i, steps - 1])
    answer, full = (_value(values, int(signals.answer[i, step - 1])) for step in (steps, row.steps))
    return {
        "trajectory": row.trajectory,
        "fired": exit_at > 0,
        "steps": steps,
        "full_steps": row.steps,
        "budget": row.budget,
        "stabilization": settled if settled <= row.steps else None,
        "premature": early,
        "candidate": _value(values, candidate),
        "answer": answer,
        "correct": grader.correct(row, ids),
        "full_answer": full,
        "full_correct": grader.correct(row, row.final_ids),
        "identical": answer == full,
        "text": grader.run.text(ids),
    }


def _value(values: Sequence[str], number: int) -> str | None:
    return None if number == NONE else values[number]


def split_decisions(decisions: pl.DataFrame, gate: str, pool: Collection[int]) -> pl.DataFrame:
    """Mark a gate's decisions on trajectories that its setting was chosen on."""
    part = (
        pl.when(pl.col("trajectory").is_in(list(pool)))
        .then(pl.lit(Split.POOL.value))
        .otherwise(pl.lit(Split.HELD_OUT.value))
    )
    return decisions.with_columns(
        split=pl.when(pl.col("gate") == gate).then(part).otherwise(pl.col("split"))
    )


def summarise_decisions(decisions: pl.DataFrame) -> pl.DataFrame:
    """Per recording, gate and split: accuracy and steps beside the full decode's.

    `saving` is of the budget, `saving_recorded` of the steps that the recorded decode took. Both
    accuracies are of the examples on which both are gradable; `not_gradable` counts the others.
    `premature` is a share of the trajectories whose answer settles, and null if there are none;
    `never_settle` counts the others.
    """
    keys = ("model", "task", "method", "gate", "split")
    gradable = pl.col("correct").is_not_null() & pl.col("full_correct").is_not_null()
    return decisions.group_by(keys, maintain_order=True).agg(
        n=pl.len(),
        not_gradable=(~gradable).sum(),
        accuracy=pl.col("correct").filter(gradable).mean(),
        full_accuracy=pl.col("full_correct").filter(gradable).mean(),
        steps=pl.col("steps").mean(),
        full_steps=pl.col("full_steps").mean(),
        budget=pl.col("budget").mean(),
        saving=1 - (pl.col("steps") / pl.col("budget")).mean(),
        saving_recorded=1 - (pl.col("steps") / pl.col("full_steps")).mean(),
        fired=pl.col("fired").mean(),
        premature=pl.col("premature").mean(),
        never_settle=pl.col("premature").null_count(),
        identical=pl.col("identical").mean(),
    )
