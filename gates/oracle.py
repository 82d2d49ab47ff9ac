"""The oracle: a gate that knows later steps, as a bound on gates that never stop too early."""

from dataclasses import dataclass
from typing import ClassVar

from c4.gates.signals import Signals, stabilization_step
from c4.store.arrays import BoolArray


@dataclass(frozen=True)
class Oracle:
    """Stops where the candidate equals the full decode's answer and never changes again.

    Can be replayed but not run live.
    """

    needs_future: ClassVar[bool] = True

    def fires(self, s: Signals, /) -> BoolArray:
        return s.step >= stabilization_step(s)[..., None]
