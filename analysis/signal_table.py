"""Signals that gates use at every step, as a data frame."""

from collections.abc import Sequence
from dataclasses import fields

import numpy as np
import polars as pl

from c4.gates.own_signals import OwnSignal, own_signals
from c4.gates.run_signals import load_signals
from c4.gates.signals import NONE, Floats, Signals
from c4.store.runs import Run

NAMED = ("candidate", "answer")
"""Signals that hold the number of a value in its trajectory; the frame holds the value."""
SIGNALS = pl.Schema(
    {
        "trajectory": pl.Int32(),
        **{
            spec.name: pl.Float64() if spec.type == Floats else pl.Int32()
            for spec in fields(Signals)
        },
        **dict.fromkeys(NAMED, pl.String()),
    }
)
"""One row per trajectory and step; `c4.gates.Signals` explains the columns. Undefined values are
null."""


def signal_table(run: Run, more: Sequence[str | OwnSignal] = ()) -> pl.DataFrame:
    """Return the signals of a run under its reading of answers. See `SIGNALS`.

    Args:
        more: user-defined signals, each of which adds a column.
    """
    own = own_signals([], more)
    schema = pl.Schema({**SIGNALS, **dict.fromkeys(own, pl.Float64())})
    frames = [schema.to_frame()]
    for part in load_signals(run, own=own):
        steps = part.signals.step.shape[-1]
        columns = {name: column.ravel() for name, column in vars(part.signals).items()}
        for name in NAMED:
            numbers = getattr(part.signals, name).tolist()
            columns[name] = [
                None if number == NONE else values[number]
                for values, row in zip(part.candidates, numbers, strict=True)
                for number in row
            ]
        columns["trajectory"] = np.repeat(part.trajectory, steps)
        frame = pl.DataFrame(columns, schema_overrides=schema).filter(pl.col("step") > 0)
        frame = frame.select(pl.col(name).cast(kind) for name, kind in schema.items())
        spans = [pl.when(pl.col(name) != NONE).then(name) for name in ("span_start", "span_end")]
        frames.append(frame.with_columns(*spans).fill_nan(None))
    return pl.concat(frames)
