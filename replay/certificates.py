"""Learn-Then-Test: certify which settings of a gate are safe, with a guarantee for any n.

Exit losses are not monotone in the thresholds, so conformal risk control does not apply. Each
setting is a hypothesis "its risk exceeds α"; an exact binomial p-value tests it, and a
multiple-testing rule keeps the chance of certifying any bad setting below δ
(Angelopoulos et al., "Learn then Test", 2021).
"""

from collections.abc import Sequence
from enum import StrEnum

import numpy as np

from c4.gates.signals import Floats, Longs
from c4.store.arrays import BoolArray

MOST_NEEDED = 100_000
"""Largest number of trajectories worth suggesting."""
LOOKED_AT_ONCE = 1_000


class Control(StrEnum):
    """Method that controls the error over the whole grid."""

    FIXED_SEQUENCE = "fixed-sequence"  # test from the most cautious setting until one fails
    BONFERRONI = "bonferroni"  # test every setting at δ / number of settings


def p_values(losses: Longs, n: int | Longs, risk: float) -> Floats:
    """Exact probability of at most this many losses in n trajectories if the risk were α."""
    from scipy import stats  # slower to import than everything else a command needs

    return stats.binom.cdf(losses, n, risk)


def certify(
    losses: Longs,
    n: int,
    *,
    risk: float,
    delta: float,
    control: Control = Control.FIXED_SEQUENCE,
    order: Sequence[int] | None = None,
) -> BoolArray:
    """Certify settings whose risk is at most α, jointly with probability at least 1 - δ.

    Args:
        losses: number of the n trajectories that each setting lost. (settings,)
        order: test order of the fixed sequence; must not depend on the data.
    """
    p = p_values(losses, n, risk)
    if control is Control.BONFERRONI:
        return p <= delta / len(losses)
    sequence = np.arange(len(losses)) if order is None else np.asarray(order)
    passed = np.zeros(len(losses), dtype=np.bool_)
    failed = np.flatnonzero(p[sequence] > delta)
    passed[sequence[: failed[0] if len(failed) else len(sequence)]] = True
    return passed


def trajectories_needed(
    share_lost: float, *, risk: float, level: float, beyond: int = 0
) -> int | None:
    """Smallest number of trajectories that would certify a setting at this rate of losses.

    None if the rate is not below the risk, or if `MOST_NEEDED` trajectories would not suffice.

    Args:
        level: upper limit for the p-value.
        beyond: number of trajectories known to be too few.
    """
    if share_lost >= risk:
        return None
    # Losses are whole numbers, so the p-value is not monotone in n: check every n.
    for start in range(beyond + 1, MOST_NEEDED + 1, LOOKED_AT_ONCE):
        n: Longs = np.arange(start, start + LOOKED_AT_ONCE)
        losses = np.floor(share_lost * n + 1e-9).astype(np.int64)  # 3/60 of 60 must be 3
        enough = p_values(losses, n, risk) <= level
        if enough.any():
            return int(n[enough.argmax()])
    return None
