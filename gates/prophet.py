"""Prophet's exit gate: the mean gap against a threshold that falls in three stages."""

from dataclasses import dataclass

import numpy as np

from c4.gates.gate import Number
from c4.gates.signals import Floats, Signals
from c4.plugins.parameters import Checked, parameter
from c4.store.arrays import BoolArray


@dataclass(frozen=True)
class Prophet(Checked):
    """Fires when the mean gap over the task's region reaches a threshold that falls in stages."""

    high: Number = parameter(7.5, low=-np.inf, meaning="threshold in the first third")
    mid: Number = parameter(5.0, low=-np.inf, meaning="threshold in the second")
    low: Number = parameter(2.5, low=-np.inf, meaning="threshold in the last")

    def demand(self, s: Signals) -> Floats:
        """Threshold that the gap must reach at each step."""
        late = np.where(s.progress < 0.67, self.mid, self.low)
        return np.where(s.progress < 0.33, self.high, late)

    def fires(self, s: Signals, /) -> BoolArray:
        return s.region_gap >= self.demand(s)
