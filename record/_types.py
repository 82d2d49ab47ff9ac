"""Array types that the record room shares."""

import numpy as np
import numpy.typing as npt

from c4.models import BoolArray, FloatArray, IntArray

TokenArray = npt.NDArray[np.int32]

__all__ = ["BoolArray", "FloatArray", "IntArray", "TokenArray"]
