"""What a forward pass predicts at every generated position. Loads no torch."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float32]
BoolArray = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Reading:
    """One forward pass, at every generated position, masked or not. Arrays are (L,)."""

    token: IntArray
    """The arg-max token; never the mask."""
    odds: FloatArray
    """Odds against it: the probability of all other tokens over its own. Rules rank by them:
    float32 tells odds near 0 apart long after it can no longer tell confidences near 1 apart."""
    confidence: FloatArray
    """Its softmax probability at temperature 1."""
    gap: FloatArray
    """Top-1 minus top-2 logit."""
    entropy: FloatArray
    """Of the full softmax, in nats."""
