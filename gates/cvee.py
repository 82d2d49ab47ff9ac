"""CVEE, the paper's exit gate, and the variants of its ablation.

Parameters broadcast against the signals' (…, T), so one object can evaluate one step of a live
decode, a whole recording, or a recording under a grid of parameters at once.
"""

from dataclasses import dataclass

import numpy as np

from c4.gates.gate import Number
from c4.gates.signals import NONE, Floats, Signals
from c4.plugins.parameters import Checked, parameter
from c4.store.arrays import BoolArray


@dataclass(frozen=True)
class CVEE(Checked):
    """Confidence-Verified Early Exit: the answer is confident and has stopped changing."""

    tau: Number = parameter(0.7, high=1.0, meaning="confidence the answer's span must reach")
    gamma: Number = parameter(2.0, meaning="stable steps that every change of answer demands")
    p_min: Number = parameter(3, meaning="stable steps in any case")

    def patience(self, s: Signals) -> Floats:
        """Number of steps for which the answer must have been stable."""
        return np.maximum(self.p_min, np.ceil(self.gamma * s.changes))

    def fires(self, s: Signals, /) -> BoolArray:
        stable = (s.candidate != NONE) & (s.run >= self.patience(s))
        return stable & (s.confidence >= self.tau)  # NaN never fires


@dataclass(frozen=True)
class ConfidenceOnly(Checked):
    """CVEE without patience: fires at the first confident answer."""

    tau: Number = parameter(0.7, high=1.0, meaning="confidence the answer's span must reach")

    def fires(self, s: Signals, /) -> BoolArray:
        return (s.candidate != NONE) & (s.confidence >= self.tau)


@dataclass(frozen=True)
class StabilityOnly(Checked):
    """CVEE without confidence: fires when the answer has stopped changing."""

    gamma: Number = parameter(2.0, meaning="stable steps that every change of answer demands")
    p_min: Number = parameter(3, meaning="stable steps in any case")

    def patience(self, s: Signals) -> Floats:
        """Number of steps for which the answer must have been stable."""
        return CVEE(gamma=self.gamma, p_min=self.p_min).patience(s)

    def fires(self, s: Signals, /) -> BoolArray:
        return (s.candidate != NONE) & (s.run >= self.patience(s))


@dataclass(frozen=True)
class FixedPatience(Checked):
    """CVEE with γ = 0: a confident answer, stable for a fixed number of steps."""

    tau: Number = parameter(0.7, high=1.0, meaning="confidence the answer's span must reach")
    p_min: Number = parameter(3, meaning="stable steps")

    def fires(self, s: Signals, /) -> BoolArray:
        return (s.candidate != NONE) & (s.run >= self.p_min) & (s.confidence >= self.tau)
