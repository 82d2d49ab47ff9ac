"""Stabilization: the step from which an answer no longer changes."""

import math
from collections.abc import Sequence

import numpy as np
import polars as pl

from c4.analysis.cohorts import PLACE, cohort_columns
from c4.analysis.paper_names import in_order
from c4.analysis.statistics import Floats, bootstrap_interval
from c4.gates.run_signals import load_signals
from c4.gates.signals import NONE, Signals, stabilization_step
from c4.replay.pools import SET_ASIDE, Pools
from c4.store.arrays import IntArray
from c4.store.runs import Run

SETTLING = pl.Schema(
    {
        **PLACE,
        "trajectory": pl.Int32(),
        "pool": pl.Boolean(),  # whether calibration may have seen the example
        "stabilization": pl.Float64(),  # s_j; null if there is no final answer
        "first_appearance": pl.Float64(),  # of the final answer; null likewise
    }
)
"""One row per trajectory. Both times are progress, as shares of the budget."""


def stabilization_table(run: Run, pools: Pools = SET_ASIDE) -> pl.DataFrame:
    """Return when each answer settled for good and when it first appeared. See `SETTLING`."""
    rows = [SETTLING.to_frame()]
    for part in load_signals(run):
        settled = settled_step(part.signals)
        shown = pl.Series(first_appearance_step(part.signals))
        frame = pl.DataFrame({"trajectory": part.trajectory}).with_columns(
            **cohort_columns(run, pools),
            stabilization=settled / run.shape.budget,
            first_appearance=pl.when(settled.is_not_null()).then(shown / run.shape.budget),
        )
        rows.append(frame.select(pl.col(name).cast(kind) for name, kind in SETTLING.items()))
    return pl.concat(rows)


def settled_step(s: Signals) -> pl.Series:
    """The step from which each trajectory's answer stays the same; null if it never settles."""
    steps = pl.Series(stabilization_step(s))
    return steps.set(pl.Series(s.steps) < steps, None)


def first_appearance_step(s: Signals) -> IntArray:
    """The first step whose candidate is the final one; often reported as stabilization.

    T + 1 if the last step has no candidate. Shapes: (…, T) -> (…)
    """
    last = s.last("candidate")
    equal = (s.candidate == last) & (last != NONE)
    first = np.where(equal.any(axis=-1), equal.argmax(axis=-1), s.steps) + 1
    return first.astype(np.int32)


def settled_by(stabilization: pl.Series, share: float) -> float | None:
    """Return s_p, the smallest progress by which a share p has settled; None if it never does."""
    reached = stabilization.drop_nulls().sort()
    needed = _needed(share, len(stabilization))
    if needed == 0 or needed > len(reached):
        return None
    return float(reached[needed - 1])


def settled_interval(stabilization: pl.Series, share: float) -> tuple[float | None, float | None]:
    """The 95% bootstrap interval of s_p; a bound is None if the share is not reached there."""
    progress = stabilization.fill_null(math.inf).to_numpy()
    place = max(0, _needed(share, len(progress)) - 1)

    def statistic(resampled: Floats) -> Floats:
        return np.partition(resampled, place, axis=1)[:, place]

    low, high = bootstrap_interval(progress, statistic)
    return (low if math.isfinite(low) else None, high if math.isfinite(high) else None)


def _needed(share: float, n: int) -> int:
    """The number of trajectories that make up a share."""
    return math.ceil(share * n - 1e-9)


def stabilization_summary(
    settling: pl.DataFrame, shares: Sequence[float] = (0.5, 0.9)
) -> pl.DataFrame:
    """Return s_p, its interval and the first appearance, per cohort and share p.

    See `SUMMARY`.
    """
    rows = []
    keys = ["model", "task", "family", "cohort", "pool"]
    for key, cohort in settling.group_by(keys, maintain_order=True):
        for share in shares:
            low, high = settled_interval(cohort["stabilization"], share)
            rows.append(
                dict(zip(keys, key, strict=True))
                | {
                    "n": cohort.height,
                    "never": cohort["stabilization"].null_count(),
                    "share": share,
                    "s_p": settled_by(cohort["stabilization"], share),
                    "low": low,
                    "high": high,
                    "appeared": settled_by(cohort["first_appearance"], share),
                }
            )
    return in_order(pl.DataFrame(rows, schema=SUMMARY), "share")


SUMMARY = pl.Schema(
    {
        **PLACE,
        "pool": pl.Boolean(),
        "n": pl.Int64(),
        "never": pl.Int64(),  # number of trajectories without a final candidate
        "share": pl.Float64(),
        "s_p": pl.Float64(),
        "low": pl.Float64(),
        "high": pl.Float64(),
        "appeared": pl.Float64(),
    }
)
