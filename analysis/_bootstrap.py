"""Bootstrap intervals, made by resampling examples."""

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
    """The percentile interval of a statistic of one sample.

    Args:
        statistic: takes (resamples, n) and returns (resamples,). Infinite values are allowed.
    """
    sample = np.asarray(values, dtype=np.float64)
    chosen = np.random.default_rng(seed).integers(len(sample), size=(RESAMPLES, len(sample)))
    tail = (1 - LEVEL) / 2
    # Not interpolated: a step, or a share of n, stays one.
    low, high = np.quantile(statistic(sample[chosen]), [tail, 1 - tail], method="inverted_cdf")
    return float(low), float(high)
