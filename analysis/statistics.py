"""Bootstrap intervals and exact tests."""

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

RESAMPLES = 2000
LEVEL = 0.95


def bootstrap_interval(
    values: npt.ArrayLike, statistic: Callable[[Floats], npt.NDArray[Any]], seed: int = 0
) -> tuple[float, float]:
    """Percentile interval of a statistic of one sample, from resampled examples.

    Args:
        statistic: takes (resamples, n) and returns (resamples,). Infinite values are allowed.
    """
    sample = np.asarray(values, dtype=np.float64)
    chosen = np.random.default_rng(seed).integers(len(sample), size=(RESAMPLES, len(sample)))
    tail = (1 - LEVEL) / 2
    # No interpolation, so that bounds are values that the statistic can take.
    low, high = np.quantile(statistic(sample[chosen]), [tail, 1 - tail], method="inverted_cdf")
    return float(low), float(high)


def mcnemar(b: int, c: int) -> float:
    """The exact two-sided p-value of McNemar's test for b and c discordant pairs."""
    from scipy.stats import binomtest

    return 1.0 if b + c == 0 else float(binomtest(b, b + c).pvalue)


def wilson_interval(successes: int, n: int) -> tuple[float, float]:
    """The 95% Wilson interval of a share."""
    from scipy.stats import binomtest

    interval = binomtest(successes, n).proportion_ci(LEVEL, method="wilson")
    return float(interval.low), float(interval.high)
