"""What gates see at every step, as a frame."""

from dataclasses import fields

import numpy as np
import polars as pl

from c4.gates.run_signals import RunSignals, load_signals
from c4.gates.signals import NONE, Floats, Signals
from c4.store.runs import Run

NAMED = ("candidate", "answer")
"""Signals that are numbers of values within their trajectory; the frame has the values."""
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
"""One row per trajectory and step; see `c4.gates.Signals` for what each column means. What is
undefined at a step is null."""


def signal_table(run: Run) -> pl.DataFrame:
    """What gates see of a run, under its reading. See `SIGNALS`."""
    return pl.concat([SIGNALS.to_frame(), *map(_part_table, load_signals(run))])


def _part_table(part: RunSignals) -> pl.DataFrame:
    steps = part.signals.step.shape[-1]
    columns = {spec.name: getattr(part.signals, spec.name).ravel() for spec in fields(Signals)}
    for name in NAMED:
        numbers = getattr(part.signals, name).tolist()
        columns[name] = [
            None if number == NONE else values[number]
            for values, row in zip(part.candidates, numbers, strict=True)
            for number in row
        ]
    frame = pl.DataFrame(
        {"trajectory": np.repeat(part.trajectory, steps), **columns}, schema_overrides=SIGNALS
    )
    frame = frame.filter(pl.col("step") > 0)
    frame = frame.select(pl.col(name).cast(kind) for name, kind in SIGNALS.items())
    spans = [pl.when(pl.col(name) != NONE).then(name) for name in ("span_start", "span_end")]
    return frame.with_columns(*spans).fill_nan(None)
