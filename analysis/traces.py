"""Frames of single trajectories, step by step and token by token."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from c4.errors import SandboxError
from c4.gates.candidates import filled_predictions
from c4.gates.cvee import CVEE
from c4.gates.gate import Gate
from c4.gates.own_signals import OwnSignals, own_signals
from c4.gates.prophet import Prophet
from c4.gates.registry import make_gate
from c4.gates.run_signals import RunSignals, candidate_reader, trajectory_signals
from c4.gates.signals import NONE, SIGNAL_NAMES, stabilization_step
from c4.replay.exits import ask_gates
from c4.replay.grader import ReplayGrader
from c4.store.arrays import TokenArray
from c4.store.labels import split_labels
from c4.store.runs import Run, Trajectory
from c4.tasks import read_under

TRACE = pl.Schema(
    {
        "model": pl.String(),
        "task": pl.String(),
        "trajectory": pl.Int32(),
        "step": pl.Int32(),
        "budget": pl.Int32(),
        "block": pl.Int32(),  # block of the first masked position
        "candidate": pl.String(),  # null if none is read
        "final": pl.Boolean(),  # whether the candidate is the full decode's answer
        "settled": pl.Boolean(),  # whether it stays so until the end
        "confidence": pl.Float64(),  # of the candidate's span; null where undefined
        "tau": pl.Float64(),
        "run": pl.Int32(),
        "patience": pl.Float64(),  # what `run` must reach for CVEE
        "gap": pl.Float64(),  # mean over the task's region
        "threshold": pl.Float64(),  # what `gap` must reach for Prophet
        "exits": pl.String(),  # gates that stop here, comma-separated; see `stops_in`
        "correct": pl.Boolean(),  # whether the full decode is right; null if not graded
        "tau_of": pl.String(),  # label of the CVEE gate that tau and patience belong to
        "threshold_of": pl.String(),  # label of the Prophet gate that the threshold belongs to
    }
)
TEXTS = pl.Schema(
    {
        "model": pl.String(),
        "task": pl.String(),
        "trajectory": pl.Int32(),
        "method": pl.String(),  # a gate, or "baseline" for the full decode
        "step": pl.Int32(),  # at which the decode ended
        "budget": pl.Int32(),
        "fired": pl.Boolean(),
        "position": pl.Int32(),
        "piece": pl.String(),  # the token's text
        "filled": pl.Boolean(),  # still masked at the exit, so filled by force
        "in_answer": pl.Boolean(),
        "answer": pl.String(),  # null if none is found
        "correct": pl.Boolean(),  # null if it cannot be graded here
        "target": pl.String(),
    }
)
"""One row per method and token of its text; the text ends at the first end token if cut there."""


_SOUND = pl.col("fired") & pl.col("premature").eq(other=False).fill_null(value=False)


def telling_trajectory(
    phases: pl.DataFrame, right: Collection[tuple[str, int]] = ()
) -> tuple[str, int] | None:
    """Cohort and number of the trajectory that shows most about the gates; None if there is none.

    Prefers trajectories that CVEE stops early with the right answer; then long reasoning to code
    to letters, since early exits risk more there; then those on which gates disagree most.

    Args:
        right: cohort and number of trajectories whose full decode is right.
    """
    if phases.is_empty():
        return None
    order = {"long_reasoning": 0, "code": 1, "letters": 2}
    spread = (
        phases.group_by("model", "task", "family", "cohort", "trajectory")
        .agg(
            good=(pl.col("gate").eq("cvee") & _SOUND & pl.col("exit").lt(1)).any(),
            sound=_SOUND.any(),
            spread=pl.col("exit").max() - pl.col("exit").min(),
        )
        .with_columns(rank=pl.col("family").replace_strict(order, default=3))
    )
    known = [key in right for key in spread.select("cohort", "trajectory").iter_rows()]
    spread = spread.with_columns(good=pl.col("good") & pl.Series(known, dtype=pl.Boolean())).sort(
        ["good", "rank", "sound", "spread", "model", "task", "trajectory"],
        descending=[True, False, True, True, False, False, False],
    )
    first = spread.row(0, named=True)
    return first["cohort"], first["trajectory"]


def _read(run: Run, index: int, own: OwnSignals) -> tuple[Trajectory, RunSignals]:
    """Read one trajectory and its signals, of shape (1, T)."""
    recorded = run.trajectory(index)
    return recorded, trajectory_signals(run, recorded, candidate_reader(run), own)


def trace_table(
    run: Run, index: int, gates: Mapping[str, Gate], signals: Sequence[str] = ()
) -> pl.DataFrame:
    """Signals of one trajectory that CVEE and Prophet use at each step, and the exits of gates.

    Args:
        signals: further signals, by any name that a gate's `signals` may hold. Their columns
            follow those of `TRACE`, as do columns of user-defined signals that the gates name.
    """
    own = own_signals(gates.values(), signals)
    known = [name for name in signals if name in SIGNAL_NAMES and name not in TRACE]
    more = {f"{name} (own)" if name in TRACE else name: name for name in [*known, *own]}
    recorded, read = _read(run, index, own)
    patient, cvee = _first_of(CVEE, gates, ("cvee", CVEE()))
    wide, prophet = _first_of(Prophet, gates, ("prophet", make_gate("prophet", run.task.family)))
    s = {name: column[0] for name, column in vars(read.signals).items()}  # (T,) each
    (values,), answer = read.candidates, s["answer"][-1]
    stops: dict[int, list[str]] = {}
    for name, step in _exits(gates, recorded, read).items():
        stops.setdefault(step, []).append(name)
    frame = pl.DataFrame(
        {
            "step": s["step"],
            "budget": s["budget"],
            "block": recorded.cells.masked.argmax(axis=-1) // run.shape.block_length,
            "candidate": [None if c == NONE else values[c] for c in s["candidate"].tolist()],
            "final": (s["candidate"] == answer) & (answer != NONE),
            "settled": s["step"] >= stabilization_step(read.signals)[0],
            "confidence": s["confidence"],
            "tau": np.full(len(s["step"]), cvee.tau),
            "run": s["run"],
            "patience": cvee.patience(read.signals)[0],
            "gap": s["region_gap"],
            "threshold": prophet.demand(read.signals)[0],
            "exits": [",".join(stops.get(step, [])) for step in s["step"].tolist()],
            **{column: s[name] for column, name in more.items()},
        },
        schema_overrides={"candidate": pl.String()},
    )
    frame = frame.with_columns(
        model=pl.lit(run.model),
        task=pl.lit(run.task_name),
        trajectory=pl.lit(index),
        confidence=pl.col("confidence").fill_nan(None),
        correct=pl.lit(recorded.row.correct),
        tau_of=pl.lit(patient),
        threshold_of=pl.lit(wide),
    )
    columns = [pl.col(name).cast(kind) for name, kind in TRACE.items()]
    further = [pl.col(name).cast(pl.Float64).fill_nan(None) for name in more]
    return frame.select(*columns, *further)


def stops_in(trace: pl.DataFrame) -> list[tuple[int, list[str]]]:
    """Return every step of a trace with the gates that stop there."""
    return [(step, split_labels(exits)) for step, exits in trace.select("step", "exits").rows()]


def _first_of(kind: type, gates: Mapping[str, Gate], usual: tuple[str, Gate]) -> tuple[str, Any]:
    """Name and gate of the first gate of a type, or the given default."""
    return next(((name, gate) for name, gate in gates.items() if isinstance(gate, kind)), usual)


def _exits(gates: Mapping[str, Gate], recorded: Trajectory, read: RunSignals) -> dict[str, int]:
    """The step at which each gate stops the trajectory; 0 where it never fires."""
    stops = ask_gates(gates, read, [(recorded.row.trajectory, recorded.cells)])
    return {name: int(its_stops[0]) for name, its_stops in stops.items()}


def text_table(
    run: Run, index: int, gates: Mapping[str, Gate], *, unsafe_code: bool = False
) -> pl.DataFrame:
    """Return the buffer as each gate would leave it, token by token. See `TEXTS`."""
    recorded, read = _read(run, index, own_signals(gates.values()))
    cells = recorded.cells
    filled = filled_predictions(cells.token, cells.masked)
    last = len(filled)
    exits = _exits(gates, recorded, read)
    rows = [TEXTS.to_frame()]
    for method, exit_at in {"baseline": 0, **exits}.items():
        step = exit_at or last
        # If no gate fires, the last step commits the masked positions as scheduled.
        forced = cells.masked[step - 1] & (exit_at > 0)
        frame = _buffer(run, recorded, filled[step - 1], forced, unsafe_code)
        rows.append(
            frame.with_columns(
                method=pl.lit(method), step=pl.lit(step), fired=pl.lit(exit_at > 0)
            ).select(pl.col(name).cast(kind) for name, kind in TEXTS.items())
        )
    return pl.concat(rows)


def _buffer(
    run: Run, trajectory: Trajectory, ids: TokenArray, forced: np.ndarray, unsafe_code: bool
) -> pl.DataFrame:
    row = trajectory.row
    task = read_under(run.task, run.reading.style)
    traced = run.vocabulary.trace(ids.tolist(), run.reading.ending)
    found = task.extract(traced.text, row.example.choices)
    first, last = (found and traced.token_span(found.start, found.end)) or (0, 0)
    n = max(1, len(traced.token_starts))  # an empty text still gets one row
    starts = [*traced.token_starts, len(traced.text)] if traced.token_starts else [0, 0]
    try:
        correct = ReplayGrader(run, unsafe_code).correct(row, ids.tolist())
    except SandboxError:
        correct = None
    return pl.DataFrame(
        {
            "position": range(n),
            "piece": [traced.text[starts[i] : starts[i + 1]] for i in range(n)],
            "filled": forced[:n],
            "in_answer": [first <= i < last for i in range(n)],
        },
        schema_overrides={"position": pl.Int32(), "piece": pl.String()},
    ).with_columns(
        model=pl.lit(run.model),
        task=pl.lit(run.task_name),
        trajectory=pl.lit(row.trajectory),
        budget=pl.lit(row.budget),
        answer=pl.lit(found.value if found else None),
        correct=pl.lit(correct),
        target=pl.lit(row.target),
    )
