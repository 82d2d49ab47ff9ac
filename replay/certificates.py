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
"""The largest number of trajectories that is worth suggesting."""
LOOKED_AT_ONCE = 1_000


class Control(StrEnum):
    """How errors over the whole grid are controlled."""

    FIXED_SEQUENCE = "fixed-sequence"  # from the most cautious setting on, until one fails
    BONFERRONI = "bonferroni"  # every setting at δ over their number


def p_values(losses: Longs, n: int | Longs, risk: float) -> Floats:
    """Exact probability of so few losses in n trajectories if the risk were just α."""
    from scipy import stats  # takes longer to load than everything else that a command needs

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
    """Which settings have a risk of at most α, all of them together with probability 1 - δ.

    Args:
        losses: how many of n trajectories each setting lost. (settings,)
        order: for the fixed sequence; must not depend on the data.
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
    """The fewest trajectories that would certify a setting that keeps losing this share.

    None where it loses as much as is risked, or so nearly that `MOST_NEEDED` would not do.

    Args:
        level: what the p-value must not exceed.
        beyond: how many were too few.
    """
    if share_lost >= risk:
        return None
    # Not monotone from one n to the next, because losses are whole numbers: look at all.
    for start in range(beyond + 1, MOST_NEEDED + 1, LOOKED_AT_ONCE):
        n: Longs = np.arange(start, start + LOOKED_AT_ONCE)
        losses = np.floor(share_lost * n + 1e-9).astype(np.int64)  # 3 in 60 are 3 of 60
        enough = p_values(losses, n, risk) <= level
        if enough.any():
            return int(n[enough.argmax()])
    return None
