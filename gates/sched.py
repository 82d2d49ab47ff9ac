"""SchED's exit gate: the gap over masked positions against a threshold that falls smoothly."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np
import numpy.typing as npt

from c4.gates.gate import Number
from c4.gates.signals import Floats, Signals, consecutive
from c4.plugins.parameters import Checked, parameter
from c4.store.arrays import BoolArray


class Curve(StrEnum):
    """How SchED's threshold falls from high to low."""

    LINEAR = "linear"
    COSINE = "cosine"
    EXPONENTIAL = "exponential"


class Region(StrEnum):
    """Positions over which SchED aggregates."""

    ALL = "all"
    LAST = "last"


class Aggregate(StrEnum):
    """How SchED combines the gaps of a region."""

    MEAN = "mean"
    MEDIAN = "median"
    QUANTILE = "quantile"


class Clock(StrEnum):
    """Measure of progress that lowers SchED's threshold."""

    COMMITTED = "committed"  # fraction of the region that is committed
    STEP = "step"  # fraction of the budget spent before the step, (step-1)/(T-1), as released


@dataclass(frozen=True)
class SchED(Checked):
    """Fires when predictions hold still and the masked gap reaches a smoothly falling threshold.

    `max_change_ratio` is 0, as in SchED's own scripts: no prediction may change in a still step.
    The port in C⁴'s release uses 1, so that every step counts as still.
    """

    high: Number = parameter(7.5, low=-np.inf, meaning="threshold at the start")
    low: Number = parameter(2.5, low=-np.inf, meaning="threshold at the end")
    curve: Curve = Curve.COSINE
    patience: Number = parameter(0, meaning="still steps before the one that fires")
    min_progress: Number = parameter(0.0, high=1.0, meaning="share committed before it may fire")
    max_change_ratio: Number = parameter(
        0.0, high=1.0, meaning="share changed in a still step", stricter=-1
    )
    k: Number = parameter(4.0, meaning="steepness of the exponential", stricter=-1)
    region: Region = Region.ALL
    aggregate: Aggregate = Aggregate.MEAN
    clock: Clock = Clock.COMMITTED

    def fires(self, s: Signals, /) -> BoolArray:
        committed = self._committed(s)
        begun = committed >= self.min_progress
        still = consecutive(begun & (self._of_region(s, "changed") <= self.max_change_ratio))
        ready = begun & (self.gap(s) >= self.demand(s)) & (still > self.patience)
        return ready | (self._of_region(s, "masked") == 0)

    def gap(self, s: Signals) -> Floats:
        """Gap that is compared with the threshold at each step."""
        suffix = "" if self.aggregate is Aggregate.MEAN else f"_{self.aggregate}"
        return self._of_region(s, f"masked_gap{suffix}")

    def demand(self, s: Signals) -> Floats:
        """Threshold that the gap must reach at each step."""
        p = self._committed(s) if self.clock is Clock.COMMITTED else s.elapsed
        fall = {
            Curve.LINEAR: 1 - p,
            Curve.COSINE: (1 + np.cos(np.pi * p)) / 2,
            Curve.EXPONENTIAL: np.exp(-self.k * p),
        }[self.curve]
        threshold: Floats = self.low + (self.high - self.low) * fall
        return threshold

    def _committed(self, s: Signals) -> Floats:
        """Fraction of the region that is committed."""
        return 1 - self._of_region(s, "masked") / self._of_region(s, "length")

    def _of_region(self, s: Signals, name: str) -> npt.NDArray[Any]:
        return getattr(s, name if self.region is Region.ALL else f"tail_{name}")
