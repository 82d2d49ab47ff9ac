"""Exit gates: may decoding stop at this step?

A gate is frozen parameters and one pure function of the signals. Parameters broadcast against
the signals' (…, T), so the same object answers for one step of a live decode, a whole recording,
or a recording under a grid of parameters at once.
"""

from abc import abstractmethod
from dataclasses import dataclass, fields
from enum import StrEnum
from typing import Any, ClassVar, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from c4.errors import RAISED, C4Error, ConfigError, did_you_mean, failure
from c4.gates.signals import NONE, Floats, Ints, Signals
from c4.plugins.parameters import Checked, parameter
from c4.store.arrays import BoolArray
from c4.store.cells import Cells

Number = float | npt.NDArray[np.float64]
"""A parameter, or an array of its values that broadcasts against (…, T)."""


class OwnGate(Protocol):
    """The least that a gate must have, and all that one of a user's own need have.

    It takes part wherever gates are asked: `as_gate` makes a `Gate` of it.
    """

    def fires(self, s: Signals) -> npt.ArrayLike:
        """Whether each step may stop. (…, T)"""


@runtime_checkable
class Gate(OwnGate, Protocol):
    """Anything that can tell, from the signals, at which steps decoding may stop."""

    @property
    def wants_cells(self) -> bool:
        """Whether it sees all cells: it is asked as `fires(s, cells)`, a trajectory at a time."""

    @property
    def needs_future(self) -> bool:
        """Whether it looks at later steps too, so that it can only be replayed."""


@dataclass(frozen=True)
class AdoptedGate:
    """A gate of a user's own, with the abilities that it leaves out."""

    gate: OwnGate
    wants_cells: bool
    needs_future: bool

    def fires(self, *seen: Any) -> npt.ArrayLike:
        return self.gate.fires(*seen)


def as_gate(gate: OwnGate) -> Gate:
    """A gate with all its abilities; those that a user's own does not mention it does not have."""
    if isinstance(gate, Gate):
        return gate
    names = ("wants_cells", "needs_future")
    return AdoptedGate(gate, **{name: bool(getattr(gate, name, False)) for name in names})


def ask(gate: Gate, s: Signals, cells: Cells | None = None) -> BoolArray:
    """Ask a gate about some steps; what goes wrong in a user's own is an error in words.

    Steps that a trajectory does not have never fire, whatever the gate makes of their padding.
    """
    question: Any = gate.fires
    try:
        with np.errstate(invalid="ignore", over="ignore"):  # what is no number never fires
            answer = question(s, cells) if gate.wants_cells else question(s)
        return _truths(gate, answer, s.exists.shape) & s.exists
    except (C4Error, MemoryError):
        raise
    except RAISED as error:
        if type(gate) in GATES.values():
            raise
        if isinstance(error, AttributeError) and error.obj is s:
            raise _unknown_signal(str(error.name)) from error
        raise ConfigError(f"the gate {kind_name(gate)} fails: {failure(error)}") from error


def _unknown_signal(name: str) -> ConfigError:
    known = [spec.name for spec in fields(Signals)]
    there = did_you_mean(name, known) or f"there are: {', '.join(known)}"
    return ConfigError(
        f"there is no signal {name!r}; {there}; one of your own is named by the gate: "
        f"signals = ({name},)"
    )


def _truths(gate: Gate, answer: Any, shape: tuple[int, ...]) -> BoolArray:
    """What a gate answers, if that is a truth for every step. A number would pass for true."""
    found = np.asarray(answer)
    if found.dtype.kind != "b":
        what = found.dtype if found.shape else repr(answer)
        raise ConfigError(
            f"the gate {kind_name(gate)} fails: fires must return booleans, not {what}; write a "
            "comparison such as s.run >= 3"
        )
    try:
        np.broadcast_shapes(found.shape, shape)  # a grid's parameters come before the steps
        answers_steps = found.shape[-1:] == shape[-1:]
    except ValueError:
        answers_steps = False
    if not answers_steps:
        raise ConfigError(
            f"the gate {kind_name(gate)} fails: fires must answer each step, an array of {shape}, "
            f"not one of {found.shape}"
        )
    return found


def kind_of(gate: object) -> type:
    """The class of a gate, as its author wrote it; or the class that was given instead of one."""
    own = gate.gate if isinstance(gate, AdoptedGate) else gate
    return own if isinstance(own, type) else type(own)


def kind_name(gate: Gate) -> str:
    """The name of a gate's class, as its author wrote it."""
    return kind_of(gate).__name__


def require_live(gate: Gate) -> None:
    """Refuse a gate that a live decode cannot ask."""
    if gate.needs_future:
        raise ConfigError(
            f"{kind_name(gate)} needs to know later steps, so it can be replayed over a recording "
            "but not run in a live decode; ask it with: c4 replay"
        )


@dataclass(frozen=True)
class KnownGate(Checked):
    """A gate of c4's own: parameters that are checked, and one function."""

    wants_cells: ClassVar[bool] = False
    needs_future: ClassVar[bool] = False

    @abstractmethod
    def fires(self, s: Signals) -> BoolArray:
        """Whether each step may stop. (…, T)"""


@dataclass(frozen=True)
class LevelGate(KnownGate):
    """A gate that fires where a level reaches tau: one pass over it answers for every tau."""

    tau: Number = parameter(0.7, high=1.0, meaning="confidence the answer's span must reach")
    threshold: ClassVar[str] = "tau"
    """The parameter that no level depends on."""

    @abstractmethod
    def level(self, s: Signals) -> Floats:
        """The confidence that is compared with tau; NaN where the gate fires in no case."""

    def fires(self, s: Signals) -> BoolArray:
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
class StabilityOnly(KnownGate):
    """CVEE without its confidence: the first answer that has stopped changing."""

    gamma: Number = parameter(2.0, meaning="stable steps that every change of answer demands")
    p_min: Number = parameter(3, meaning="stable steps in any case")

    def fires(self, s: Signals) -> BoolArray:
        return CVEE(gamma=self.gamma, p_min=self.p_min).is_stable(s)


@dataclass(frozen=True)
class FixedPatience(LevelGate):
    """CVEE with γ = 0: a confident answer, stable for a fixed number of steps."""

    p_min: Number = parameter(3, meaning="stable steps")

    def level(self, s: Signals) -> Floats:
        return CVEE(gamma=0.0, p_min=self.p_min).level(s)


@dataclass(frozen=True)
class Prophet(KnownGate):
    """The mean gap over the task's region reaches a threshold that falls in three stages."""

    high: Number = parameter(7.5, low=-np.inf, meaning="threshold in the first third")
    mid: Number = parameter(5.0, low=-np.inf, meaning="threshold in the second")
    low: Number = parameter(2.5, low=-np.inf, meaning="threshold in the last")

    def demand(self, s: Signals) -> Floats:
        """The threshold that the gap must reach at each step."""
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
    """The positions that SchED looks at."""

    ALL = "all"
    LAST = "last"


class Aggregate(StrEnum):
    """How SchED aggregates the gaps."""

    MEAN = "mean"
    MEDIAN = "median"
    QUANTILE = "quantile"


class Clock(StrEnum):
    """What drives SchED's threshold."""

    COMMITTED = "committed"  # the share of the region that is committed
    STEP = "step"  # the share of the budget spent before the step: (step-1)/(T-1), as released


@dataclass(frozen=True)
class SchED(KnownGate):
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
        committed = self._committed(s)
        begun = committed >= self.min_progress
        still = consecutive(begun & (self._of_region(s, "changed") <= self.max_change_ratio))
        ready = begun & (self.gap(s) >= self.demand(s)) & (still > self.patience)
        return ready | (self._of_region(s, "masked") == 0)

    def gap(self, s: Signals) -> Floats:
        """The gap that is compared with the threshold at each step."""
        suffix = "" if self.aggregate is Aggregate.MEAN else f"_{self.aggregate}"
        return self._of_region(s, f"masked_gap{suffix}")

    def demand(self, s: Signals) -> Floats:
        """The threshold that the gap must reach at each step."""
        p = self._committed(s) if self.clock is Clock.COMMITTED else s.elapsed
        fall = {
            Curve.LINEAR: 1 - p,
            Curve.COSINE: (1 + np.cos(np.pi * p)) / 2,
            Curve.EXPONENTIAL: np.exp(-self.k * p),
        }[self.curve]
        threshold: Floats = self.low + (self.high - self.low) * fall
        return threshold

    def _committed(self, s: Signals) -> Floats:
        """The share of the region that is committed."""
        return 1 - self._of_region(s, "masked") / self._of_region(s, "length")

    def _of_region(self, s: Signals, name: str) -> npt.NDArray[Any]:
        return getattr(s, name if self.region is Region.ALL else f"tail_{name}")


@dataclass(frozen=True)
class FixedProgress(KnownGate):
    """Stop at a fraction of the budget, whatever the model says."""

    fraction: Number = parameter(0.5, high=1.0, meaning="share of the budget to spend")

    def fires(self, s: Signals) -> BoolArray:
        return s.progress >= self.fraction


@dataclass(frozen=True)
class Oracle(KnownGate):
    """Stops where the candidate is the full decode's answer and never changes again: the bound.

    It knows the future, so it can be replayed but not run live.
    """

    needs_future: ClassVar[bool] = True

    def fires(self, s: Signals) -> BoolArray:
        return s.step >= stabilization_step(s)[..., None]


def consecutive(holds: BoolArray) -> Ints:
    """For how many consecutive steps, up to each step, a condition has held. (…, T)"""
    steps = np.arange(1, holds.shape[-1] + 1, dtype=np.int32)
    broken = np.maximum.accumulate(np.where(holds, 0, steps), axis=-1)
    return (steps - broken).astype(np.int32)


def stabilization_step(s: Signals) -> Ints:
    """s_j in steps: from here on every candidate is the full decode's answer. (…, T) -> (…)

    One more than the trajectory's steps where the last candidate is none, or is not the answer: a
    box, or the front of a number, may stand before the tail, where no gate looks.
    """
    answer = s.last("answer")
    agrees = (s.candidate == answer) & (answer != NONE)
    run = consecutive(agrees | ~s.exists)[..., -1]  # padding changes nothing
    return (s.candidate.shape[-1] - run + 1).astype(np.int32)


def are_premature(exits: Ints, stabilization: Ints, steps: Ints) -> list[bool | None]:
    """Whether each exit came before the answer had settled; 0 is no exit, so never premature.

    None where the answer never settles within the trajectory's steps: no exit is then too early,
    and none is late enough. Shares of premature exits leave such trajectories out. (n,) each
    """
    early = (exits > 0) & (exits < stabilization)
    settles = stabilization <= steps
    return [bool(at) if known else None for at, known in zip(early, settles, strict=True)]


def exit_step(fires: BoolArray) -> Ints:
    """The first step that fires, counted from 1; 0 if none does. (…, T) -> (…)"""
    return np.where(fires.any(axis=-1), fires.argmax(axis=-1) + 1, 0).astype(np.int32)


GATES: dict[str, type[KnownGate]] = {
    "cvee": CVEE,
    "confidence": ConfidenceOnly,
    "stability": StabilityOnly,
    "fixed-patience": FixedPatience,
    "prophet": Prophet,
    "sched": SchED,
    "progress": FixedProgress,
    "oracle": Oracle,
}
"""Every kind of gate by its name."""
