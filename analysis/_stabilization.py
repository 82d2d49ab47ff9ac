"""When answers stop changing."""

import math

import polars as pl

from c4.record import Run
from c4.replay import load_signals, stabilization_step


def stabilization(run: Run) -> pl.DataFrame:
    """s_j of every trajectory: the progress from which its candidate is the last one for good.

    Columns: trajectory, stabilization (null where the last step has no candidate).
    """
    frames = []
    for part in load_signals(run):
        steps = stabilization_step(part.signals)
        progress = steps / run.shape.steps
        frame = pl.DataFrame({"trajectory": part.trajectory, "stabilization": progress})
        settled = pl.Series(steps <= part.signals.step.shape[-1])
        frames.append(
            frame.with_columns(
                pl.when(settled).then(pl.col("stabilization")).alias("stabilization")
            )
        )
    return pl.concat(frames)


def settled_by(stabilization: pl.Series, share: float) -> float | None:
    """s_p: the smallest progress by which a share p of the cohort has settled; None if never."""
    reached = stabilization.drop_nulls().sort()
    needed = math.ceil(share * len(stabilization) - 1e-9)
    if needed == 0 or needed > len(reached):
        return None
    return float(reached[needed - 1])
