"""Decisions of gates on recordings: when each would have stopped, and with which answer."""

from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import Any

import polars as pl

from c4.gates.candidates import filled_predictions
from c4.gates.gate import Gate
from c4.gates.run_signals import RunSignals
from c4.gates.signals import NONE, Ints, stabilization_step
from c4.replay.exits import exits
from c4.replay.grader import ReplayGrader
from c4.store.runs import Run, Trajectory

DECISIONS = pl.Schema(
    {
        "model": pl.String(),
        "task": pl.String(),
        "trajectory": pl.Int32(),
        "method": pl.String(),  # label of the recorded method
        "gate": pl.String(),
        "split": pl.String(),  # see `Split`; null if the gate was not calibrated on this recording
        "fired": pl.Boolean(),  # before the budget was spent
        "steps": pl.Int32(),  # forward passes, the firing one included
        "full_steps": pl.Int32(),  # of the recorded decode; a sampler may not take the whole budget
        "budget": pl.Int32(),
        "stabilization": pl.Int32(),  # s_j in steps; null if the answer never settles
        "premature": pl.Boolean(),  # fired before s_j; null if the answer never settles
        "candidate": pl.String(),  # candidate at the exit step
        "answer": pl.String(),  # answer that a grader finds after the final fill
        "correct": pl.Boolean(),  # null if the machine failed to grade it
        "full_answer": pl.String(),
        "full_correct": pl.Boolean(),  # likewise
        "identical": pl.Boolean(),  # answer equal to the full decode's
        "text": pl.String(),  # after the final fill
    }
)
"""One row per trajectory and gate."""


class Split(StrEnum):
    """Whether a trajectory was used to choose a gate's setting."""

    POOL = "pool"  # used to choose the setting
    HELD_OUT = "held out"  # the setting was chosen on other trajectories of the recording


def replay(
    run: Run, gates: Mapping[str, Gate], *, unsafe_code: bool = False
) -> Iterator[pl.DataFrame]:
    """Yield every gate's decision on every trajectory, part by part. See `DECISIONS`."""
    facts = {"model": run.model, "task": run.task_name, "method": run.method, "split": None}
    for part, read, stops in exits(run, gates):
        grader = ReplayGrader(run, unsafe_code)
        rows = [
            {"gate": name, **facts, **decided}
            for i, recorded in enumerate(run.read(part))
            for name, decided in decide(recorded, read, i, stops, grader).items()
        ]
        yield pl.DataFrame(rows, schema=DECISIONS)


def decide(
    recorded: Trajectory,
    read: RunSignals,
    i: int,
    stops: Mapping[str, Ints],
    grader: ReplayGrader,
) -> dict[str, dict[str, Any]]:
    """Return every gate's decision on one trajectory, the i-th of `read` and of `stops`."""
    row, signals, values = recorded.row, read.signals.one(i), read.candidates[i]
    filled = filled_predictions(recorded.cells.token, recorded.cells.masked)
    settled = int(stabilization_step(signals))
    settles = settled <= row.steps

    def value(numbers: Ints, step: int) -> str | None:
        number = int(numbers[step - 1])
        return None if number == NONE else values[number]

    full = value(signals.answer, row.steps)
    decided = {}
    for name, its_stops in stops.items():
        exit_at = int(its_stops[i])
        steps = exit_at or row.steps
        ids, answer = filled[steps - 1].tolist(), value(signals.answer, steps)
        decided[name] = {
            "trajectory": row.trajectory,
            "fired": exit_at > 0,
            "steps": steps,
            "full_steps": row.steps,
            "budget": row.budget,
            "stabilization": settled if settles else None,
            "premature": 0 < exit_at < settled if settles else None,
            "candidate": value(signals.candidate, steps),
            "answer": answer,
            "correct": grader.correct(row, ids),
            "full_answer": full,
            "full_correct": grader.correct(row, row.final_ids),
            "identical": answer == full,
            "text": grader.run.text(ids),
        }
    return decided


def summarise_decisions(decisions: pl.DataFrame) -> pl.DataFrame:
    """Aggregate accuracy and steps, next to the full decode's, per recording, gate and split.

    `saving` is relative to the budget, `saving_recorded` to the steps of the recorded decode. Both
    accuracies use the examples for which both are gradable; `not_gradable` counts the others.
    `premature` is a fraction of the trajectories whose answer settles, null if there are none;
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
