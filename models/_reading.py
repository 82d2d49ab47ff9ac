"""Predictions of a forward pass at every generated position. Loads no torch."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float32]
BoolArray = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Reading:
    """Predictions at every generated position, masked or not. Arrays are (L,)."""

    token: IntArray
    """Arg-max token; never the mask."""
    odds: FloatArray
    """Odds against the token: probability of all other tokens divided by its own. Rules rank by
    odds, because float32 resolves odds near 0 far better than confidences near 1."""
    confidence: FloatArray
    """Softmax probability of the token at temperature 1."""
    gap: FloatArray
    """Top-1 minus top-2 logit."""
    entropy: FloatArray
    """Entropy of the full softmax, in nats."""
