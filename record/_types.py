"""Array types that the record room shares."""

import numpy as np
import numpy.typing as npt

BoolArray = npt.NDArray[np.bool_]
FloatArray = npt.NDArray[np.float32]
IntArray = npt.NDArray[np.int64]
TokenArray = npt.NDArray[np.int32]
