"""Exit gates: may decoding stop at this step?

A gate is frozen parameters and one pure function of the signals. Parameters broadcast against
the signals' (…, T), so the same object answers for one step of a live decode, a whole recording,
or a recording under a grid of parameters at once.
"""

from dataclasses import dataclass, fields
from enum import StrEnum
from typing import Any, ClassVar, Protocol

import numpy as np
import numpy.typing as npt

from c4.errors import C4Error, ConfigError, failure
from c4.gates.signals import NONE, Floats, Ints, Signals
from c4.store.arrays import BoolArray
from c4.store.cells import Cells
from c4.store.parameters import Checked, parameter

Number = float | npt.NDArray[np.float64]
"""A parameter, or an array of its values that broadcasts against (…, T)."""


class Gate(Protocol):
    """Anything that can tell, from the signals, at which steps decoding may stop.

    A gate with `wants_cells = True` is asked trajectory by trajectory, as `fires(s, cells)`, and
    sees every position. One with `needs_future = True` can only be replayed.
    """

    def fires(self, s: Signals) -> BoolArray:
        """Whether each step may stop. (…, T)"""


def ask(gate: Gate, s: Signals, cells: Cells | None = None) -> BoolArray:
    """Ask a gate about some steps; what goes wrong in it is an error in words.

    Steps that a trajectory does not have never fire, whatever the gate makes of their padding.
    """
    question: Any = gate.fires
    try:
        with np.errstate(invalid="ignore", over="ignore"):  # what is no number never fires
            answer = question(s, cells) if wants_cells(gate) else question(s)
        return np.asarray(answer, dtype=np.bool_) & s.exists
    except (C4Error, MemoryError):
        raise
    except Exception as error:
        if type(gate) in GATES.values():
            raise
        if isinstance(error, AttributeError) and error.obj is s:
            known = ", ".join(spec.name for spec in fields(Signals))
            raise ConfigError(f"there is no signal {error.name!r}; there are: {known}") from error
        raise ConfigError(f"the gate {type(gate).__name__} fails: {failure(error)}") from error


def wants_cells(gate: Gate) -> bool:
    return getattr(gate, "wants_cells", False)


def can_run_live(gate: Gate | type[Gate]) -> bool:
    """Whether a gate, or a kind of gate, decides from the past alone."""
    return not getattr(gate, "needs_future", False)


def require_live(gate: Gate) -> None:
    """Refuse a gate that a live decode cannot ask."""
    if not can_run_live(gate):
        raise ConfigError(
            f"{type(gate).__name__} needs to know the steps that come after, so it can be replayed "
            "over a recording but not run in a live decode; ask it with: c4 replay"
        )


@dataclass(frozen=True)
class CVEE(Checked):
    """Confidence-Verified Early Exit: the answer is confident and has stopped changing."""

    tau: Number = parameter(0.7, high=1.0, meaning="confidence the answer's span must reach")
    gamma: Number = parameter(2.0, meaning="stable steps that every change of answer demands")
    p_min: Number = parameter(3, meaning="stable steps in any case")
    threshold: ClassVar = "tau"

    def patience(self, s: Signals) -> Floats:
        """Stable steps that the answer must have behind it."""
        return np.maximum(self.p_min, np.ceil(self.gamma * s.changes))

    def is_stable(self, s: Signals) -> BoolArray:
        """Whether there is an answer that has lasted as long."""
        return (s.candidate != NONE) & (s.run >= self.patience(s))

    def level(self, s: Signals) -> Floats:
        """The confidence of a stable answer; NaN where it is not stable yet, and never fires."""
        return np.where(self.is_stable(s), s.confidence, np.nan)

    def fires(self, s: Signals) -> BoolArray:
        return self.level(s) >= self.tau


@dataclass(frozen=True)
class ConfidenceOnly(Checked):
    """CVEE without its patience: the first confident answer."""

    tau: Number = parameter(0.7, high=1.0, meaning="confidence the answer's span must reach")
    threshold: ClassVar = "tau"

    def level(self, s: Signals) -> Floats:
        return np.where(s.candidate != NONE, s.confidence, np.nan)

    def fires(self, s: Signals) -> BoolArray:
        return self.level(s) >= self.tau


@dataclass(frozen=True)
class StabilityOnly(Checked):
    """CVEE without its confidence: the first answer that has stopped changing."""

    gamma: Number = parameter(2.0, meaning="stable steps that every change of answer demands")
    p_min: Number = parameter(3, meaning="stable steps in any case")

    def fires(self, s: Signals) -> BoolArray:
        return CVEE(gamma=self.gamma, p_min=self.p_min).is_stable(s)


@dataclass(frozen=True)
class FixedPatience(Checked):
    """CVEE with γ = 0: a confident answer, stable for a fixed number of steps."""

    tau: Number = parameter(0.7, high=1.0, meaning="confidence the answer's span must reach")
    p_min: Number = parameter(3, meaning="stable steps")
    threshold: ClassVar = "tau"

    def level(self, s: Signals) -> Floats:
        return CVEE(gamma=0.0, p_min=self.p_min).level(s)

    def fires(self, s: Signals) -> BoolArray:
        return self.level(s) >= self.tau


@dataclass(frozen=True)
class Prophet(Checked):
    """The mean gap over the task's region reaches a threshold that falls in three stages."""

    high: Number = parameter(7.5, low=-np.inf, meaning="threshold in the first third")
    mid: Number = parameter(5.0, low=-np.inf, meaning="threshold in the second")
    low: Number = parameter(2.5, low=-np.inf, meaning="threshold in the last")

    def demand(self, s: Signals) -> Floats:
        """What the gap must reach at each step."""
        late = np.where(s.progress < 0.67, self.mid, self.low)
        return np.where(s.progress < 0.33, self.high, late)

    def fires(self, s: Signals) -> BoolArray:
        return s.region_gap >= self.demand(s)


class Curve(StrEnum):
    """How SchED's threshold falls from high to low."""

    LINEAR = "linear"
    COSINE = "cosine"
    EXPONENTIAL = "exponential"


class Region(StrEnum):
    """Where SchED looks."""

    ALL = "all"
    LAST = "last"


class Aggregate(StrEnum):
    """What SchED makes of the gaps."""

    MEAN = "mean"
    MEDIAN = "median"
    QUANTILE = "quantile"


class Clock(StrEnum):
    """What drives SchED's threshold."""

    COMMITTED = "committed"  # the share of the region that is committed
    STEP = "step"  # the share of the budget spent before the step: (step-1)/(T-1), as released


@dataclass(frozen=True)
class SchED(Checked):
    """The gap over masked positions reaches a threshold that falls smoothly, and holds still.

    `max_change_ratio` is 0, as in SchED's own scripts: a still step changes nothing. The port in
    C⁴'s release has 1, where every step counts as still.
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

    def fires(self, s: Signals) -> BoolArray:
        prefix = "" if self.region is Region.ALL else "tail_"
        suffix = "" if self.aggregate is Aggregate.MEAN else f"_{self.aggregate}"
        masked: Ints = getattr(s, f"{prefix}masked")
        gap: Floats = getattr(s, f"{prefix}masked_gap{suffix}")
        changed: Floats = getattr(s, f"{prefix}changed")
        committed = 1 - masked / getattr(s, f"{prefix}length")
        begun = committed >= self.min_progress
        still = consecutive(begun & (changed <= self.max_change_ratio))
        clock = committed if self.clock is Clock.COMMITTED else s.elapsed
        ready = begun & (gap >= self._threshold(clock)) & (still > self.patience)
        return ready | (masked == 0)

    def _threshold(self, p: Floats) -> Floats:
        fall = {
            Curve.LINEAR: 1 - p,
            Curve.COSINE: (1 + np.cos(np.pi * p)) / 2,
            Curve.EXPONENTIAL: np.exp(-self.k * p),
        }[self.curve]
        threshold: Floats = self.low + (self.high - self.low) * fall
        return threshold


@dataclass(frozen=True)
class FixedProgress(Checked):
    """Stop at a fraction of the budget, whatever the model says."""

    fraction: Number = parameter(0.5, high=1.0, meaning="share of the budget to spend")

    def fires(self, s: Signals) -> BoolArray:
        return s.progress >= self.fraction


@dataclass(frozen=True)
class Oracle:
    """Stops where the candidate is the full decode's answer and never changes again: the bound.

    It knows the future, so it can be replayed but not run live.
    """

    needs_future = True

    def fires(self, s: Signals) -> BoolArray:
        return s.step >= stabilization_step(s)[..., None]


def consecutive(holds: BoolArray) -> Ints:
    """How many steps in a row, the present one last, a condition has held. (…, T)"""
    steps = np.arange(1, holds.shape[-1] + 1, dtype=np.int32)
    broken = np.maximum.accumulate(np.where(holds, 0, steps), axis=-1)
    return (steps - broken).astype(np.int32)


def stabilization_step(s: Signals) -> Ints:
    """s_j in steps: from here on every candidate is the full decode's answer. (…, T) -> (…)

    One more than the trajectory's steps where the last candidate is none, or is not the answer: a
    box, or the front of a number, may stand before the tail, where no gate looks.
    """
    answer = s.last("answer")
    settled = (s.candidate == answer) & (answer != NONE)
    run = consecutive(settled | ~s.exists)[..., -1]  # padding changes nothing
    return (s.candidate.shape[-1] - run + 1).astype(np.int32)


def is_premature(exits: npt.ArrayLike, stabilization: npt.ArrayLike) -> BoolArray:
    """Whether exits came before the answer had settled, in steps; 0 is no exit and never early."""
    at = np.asarray(exits)
    return (at > 0) & (at < np.asarray(stabilization))


def exit_step(fires: BoolArray) -> Ints:
    """The first step that fires, counted from 1; 0 where none does. (…, T) -> (…)"""
    return np.where(fires.any(axis=-1), fires.argmax(axis=-1) + 1, 0).astype(np.int32)


GATES: dict[str, type[Any]] = {
    "cvee": CVEE,
    "confidence": ConfidenceOnly,
    "stability": StabilityOnly,
    "fixed-patience": FixedPatience,
    "prophet": Prophet,
    "sched": SchED,
    "progress": FixedProgress,
    "oracle": Oracle,
}
