"""A baseline gate that uses only the number of steps spent."""

from dataclasses import dataclass

from c4.gates.gate import Number
from c4.gates.signals import Signals
from c4.plugins.parameters import Checked, parameter
from c4.store.arrays import BoolArray


@dataclass(frozen=True)
class FixedProgress(Checked):
    """Stops at a fixed fraction of the budget, regardless of the predictions."""

    fraction: Number = parameter(0.5, high=1.0, meaning="share of the budget to spend")

    def fires(self, s: Signals, /) -> BoolArray:
        return s.progress >= self.fraction
