"""CVEE, the paper's exit gate, and the arms of its ablation.

Parameters broadcast against the signals' (…, T), so one object answers for one step of a live
decode, for a whole recording, or for a recording under a grid of parameters at once.
"""

from abc import abstractmethod
from dataclasses import dataclass

import numpy as np

from c4.gates.gate import Number
from c4.gates.signals import NONE, Floats, Signals
from c4.plugins.parameters import Checked, parameter
from c4.store.arrays import BoolArray


@dataclass(frozen=True)
class LevelGate(Checked):
    """A gate that fires where a level reaches tau, so one pass over the level serves every tau."""

    tau: Number = parameter(0.7, high=1.0, meaning="confidence the answer's span must reach")

    @abstractmethod
    def level(self, s: Signals) -> Floats:
        """The confidence that is compared with tau; NaN where no tau makes the gate fire."""

    def fires(self, s: Signals, /) -> BoolArray:
        return self.level(s) >= self.tau


@dataclass(frozen=True)
class CVEE(LevelGate):
    """Confidence-Verified Early Exit: the answer is confident and has stopped changing."""

    gamma: Number = parameter(2.0, meaning="stable steps that every change of answer demands")
    p_min: Number = parameter(3, meaning="stable steps in any case")

    def patience(self, s: Signals) -> Floats:
        """For how many steps the answer must have been stable."""
        return np.maximum(self.p_min, np.ceil(self.gamma * s.changes))

    def is_stable(self, s: Signals) -> BoolArray:
        """Whether there is an answer that has been stable for that long."""
        return (s.candidate != NONE) & (s.run >= self.patience(s))

    def level(self, s: Signals) -> Floats:
        """The confidence of a stable answer; NaN where it is not stable yet."""
        return np.where(self.is_stable(s), s.confidence, np.nan)


@dataclass(frozen=True)
class ConfidenceOnly(LevelGate):
    """CVEE without its patience: the first confident answer."""

    def level(self, s: Signals) -> Floats:
        return np.where(s.candidate != NONE, s.confidence, np.nan)


@dataclass(frozen=True)
class StabilityOnly(Checked):
    """CVEE without its confidence: the first answer that has stopped changing."""

    gamma: Number = parameter(2.0, meaning="stable steps that every change of answer demands")
    p_min: Number = parameter(3, meaning="stable steps in any case")

    def fires(self, s: Signals, /) -> BoolArray:
        return CVEE(gamma=self.gamma, p_min=self.p_min).is_stable(s)


@dataclass(frozen=True)
class FixedPatience(LevelGate):
    """CVEE with γ = 0: a confident answer, stable for a fixed number of steps."""

    p_min: Number = parameter(3, meaning="stable steps")

    def level(self, s: Signals) -> Floats:
        return CVEE(gamma=0.0, p_min=self.p_min).level(s)
