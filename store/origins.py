"""Origins of committed tokens."""

from enum import IntEnum

import numpy as np
import numpy.typing as npt

OriginArray = npt.NDArray[np.uint8]


class Origin(IntEnum):
    """Reason why a token was committed. Stored for every position of a live decode."""

    SCHEDULE = 0
    CORE = 1  # CCTC: few undecided positions to its left
    CONFIRMED = 2  # CCTC: deferred one step, then predicted again
    ACCEPTED = 3  # confident enough for a threshold, at any position
    FILL = 4  # still masked when the exit gate fired
