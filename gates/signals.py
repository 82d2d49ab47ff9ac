"""Signals: the inputs of gates at every step, as arrays that do not depend on any threshold.

Means are based on sums of fixed-point numbers, which are exact in float64 in any order, so a
recording and a live decode give identical bits.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, make_dataclass
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from c4.gates.candidates import CandidateReader, filled_predictions
from c4.store.arrays import BoolArray, FloatArray
from c4.store.cells import Cells
from c4.tasks import SearchMode, Shape
from c4.tasks.task import Choices

Ints = npt.NDArray[np.int32]
Longs = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

NONE = -1
"""Marks a missing candidate, answer, span or step."""
QUANTILE = 0.2
"""Quantile of the masked gaps that is computed; the default of SchED's release."""


@dataclass(frozen=True)
class Signals:
    """Signals of one trajectory, or of several stacked ones. Arrays are (…, T).

    In a stack, shorter trajectories are padded after their last step.
    """

    step: Ints
    """1…T; -1 for padding."""
    budget: Ints
    """Steps of the full decode."""
    candidate: Ints
    """Number of the extracted value, local to the trajectory; -1 if there is none."""
    span_start: Ints
    span_end: Ints
    """First position of the candidate and one past its last; -1 if not located."""
    confidence: Floats
    """Mean over the span; NaN without a span or if it extends beyond the current block."""
    entropy: Floats
    """Mean over the span, in nats; NaN where the confidence is NaN."""
    run: Ints
    """Consecutive extractions with the current value."""
    changes: Ints
    """Number of extractions so far whose value differed from the previous one."""
    region_gap: Floats
    """Mean gap over all positions of the task's region, masked or not."""
    masked: Ints
    """Number of masked positions when the step began."""
    masked_gap: Floats
    """Mean gap over the masked positions; NaN if there are none."""
    masked_gap_median: Floats
    """Median of those gaps: the lower of two middle values, as in `torch.median`."""
    masked_gap_quantile: Floats
    """Quantile of those gaps at `QUANTILE`, the cautious end."""
    changed: Floats
    """Fraction of masked positions whose prediction differs from the previous step's;
    1 at the first step."""
    tail_masked: Ints
    tail_masked_gap: Floats
    tail_masked_gap_median: Floats
    tail_masked_gap_quantile: Floats
    tail_changed: Floats
    """The same as `masked` to `changed`, restricted to the tail."""
    tail_length: Ints
    length: Ints
    """Number of positions in the tail, and in the generation."""
    answer: Ints
    """Number of the answer that a grader finds in the filled buffer; -1 if none. Candidates and
    answers share one numbering, so equal numbers are equal values."""

    @property
    def progress(self) -> Floats:
        """Fraction of the budget spent, including the current step."""
        return self.step / self.budget

    @property
    def elapsed(self) -> Floats:
        """Fraction of the budget spent before the current step: 0 at step 1, 1 from step T on."""
        return np.minimum(1.0, (self.step - 1) / np.maximum(self.budget - 1, 1))

    @property
    def exists(self) -> BoolArray:
        """Whether each step was taken, as opposed to padding. (…, T)"""
        return self.step > 0

    @property
    def steps(self) -> Ints:
        """Number of steps of each trajectory. (…)"""
        return self.exists.sum(axis=-1, dtype=np.int32)

    def map(self, change: Callable[[npt.NDArray[Any]], npt.NDArray[Any]]) -> "Signals":
        """Apply a function to every signal."""
        return type(self)(**{f.name: change(getattr(self, f.name)) for f in fields(self)})

    def one(self, i: int, steps: int | None = None) -> "Signals":
        """Return the i-th trajectory of a stack, optionally only its first steps."""
        return self.map(lambda column: column[i, :steps])

    def last(self, name: str) -> npt.NDArray[Any]:
        """Return a signal at each trajectory's own last step. (…, 1)"""
        return np.take_along_axis(getattr(self, name), self.steps[..., None] - 1, axis=-1)


SIGNAL_NAMES = tuple(spec.name for spec in fields(Signals))


@cache
def signals_with(names: tuple[str, ...]) -> Any:
    """Return a subclass of `Signals` with users' own signals as further fields."""
    more = [(name, Floats) for name in names]
    return make_dataclass("Signals", more, bases=(Signals,), frozen=True) if more else Signals


def as_signals(columns: Mapping[str, npt.NDArray[Any]]) -> Signals:
    """Make signals from arrays by name; names unknown to c4 are users' own signals."""
    own = tuple(sorted(columns.keys() - SIGNAL_NAMES))
    found: Signals = signals_with(own)(**columns)
    return found


OfTrajectory = Callable[[Signals, Cells], Floats]
"""A user's own signal, computed from one trajectory's signals and cells. (T,), (T, L) -> (T,)"""


def read_signals(
    cells: Cells,
    shape: Shape,
    reader: CandidateReader,
    choices: Sequence[Choices],
    own: Mapping[str, OfTrajectory] | None = None,
) -> tuple[Signals, list[list[str]]]:
    """Compute all signals of recorded trajectories, and the values behind their numbers.

    Args:
        cells: arrays of (n, T, L).
        choices: answer choices of each trajectory's example. (n,)
        own: users' own signals by name.

    Returns:
        Signals of (n, T), and per trajectory the value of each candidate or answer number. (n,)
    """
    filled = filled_predictions(cells.token, cells.masked)
    n, steps, _ = filled.shape
    # A prediction equal to that of the previous step has already been read.
    fresh = np.ones((n, steps), dtype=np.bool_)
    fresh[:, 1:] = (filled[:, 1:] != filled[:, :-1]).any(axis=2)
    offered = [choices[i] for i in np.nonzero(fresh)[0].tolist()]
    read = reader.read(filled[fresh], offered)
    which = (np.cumsum(fresh) - 1).reshape(n, steps)
    firsts = [*which[:, 0].tolist(), len(read)]
    by_trajectory = [read[firsts[i] : firsts[i + 1]] for i in range(n)]
    numbers, candidates = number(
        [[v for f, answer in r for v in (f.value if f else None, answer)] for r in by_trajectory]
    )
    candidate, answer = numbers[::2], numbers[1::2]
    # Decoding leaves a block when it is full, so the current one has the first masked position.
    block_ends = (
        cells.masked.argmax(axis=-1) // shape.block_length + 1
    ) * shape.block_length  # (n, T)
    places = [f.span if f and f.span else (NONE, NONE) for f, _ in read]
    spans = span_signals(cells, np.array(places, dtype=np.int64)[which], block_ends)
    candidate = counted(candidate[which], spans["confidence"], reader)
    run, changes = stability(candidate)
    signals = Signals(
        step=np.tile(np.arange(1, steps + 1, dtype=np.int32), (n, 1)),
        budget=np.full((n, steps), shape.budget, dtype=np.int32),
        candidate=candidate,
        run=run,
        changes=changes,
        answer=answer[which],
        **spans,
        **margin_signals(cells, reader),
    )
    if own:
        alone = [(signals.one(i), cells[i].as_decoded()) for i in range(n)]
        made = {name: np.stack([of(s, c) for s, c in alone]) for name, of in own.items()}
        signals = as_signals(vars(signals) | made)
    return signals, candidates


def number(values: Sequence[Sequence[str | None]]) -> tuple[Ints, list[list[str]]]:
    """Number each trajectory's values in order of appearance, as one flat array; None is -1."""
    numbers: list[int] = []
    known: list[dict[str, int]] = []
    for row in values:
        seen: dict[str, int] = {}
        numbers += [NONE if value is None else seen.setdefault(value, len(seen)) for value in row]
        known.append(seen)
    return np.array(numbers, dtype=np.int32), [list(seen) for seen in known]


def counted(candidate: Ints, confidence: Floats, reader: CandidateReader) -> Ints:
    """Drop code candidates without confidence, whose provisional tail would pile up changes."""
    if reader.task.search is not SearchMode.CODE:
        return candidate
    return np.where(np.isnan(confidence), np.int32(NONE), candidate)


def span_signals(cells: Cells, spans: Longs, block_ends: Longs) -> dict[str, npt.NDArray[Any]]:
    """Compute the signals that depend on the candidate's span. spans: (…, T, 2)"""
    defined = (spans[..., 0] >= 0) & (spans[..., 1] <= block_ends)
    return {
        "span_start": spans[..., 0].astype(np.int32),
        "span_end": spans[..., 1].astype(np.int32),
        "confidence": _span_mean(cells.confidence, spans, defined),
        "entropy": _span_mean(cells.entropy, spans, defined),
    }


def _span_mean(signal: FloatArray, spans: Longs, defined: BoolArray) -> Floats:
    """Mean over each step's span; NaN where undefined. (…, T, L) -> (…, T)"""
    sums = np.zeros((*signal.shape[:-1], signal.shape[-1] + 1))
    np.cumsum(signal, axis=-1, dtype=np.float64, out=sums[..., 1:])
    ends = np.take_along_axis(sums, spans, axis=-1)  # (…, T, 2)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = (ends[..., 1] - ends[..., 0]) / (spans[..., 1] - spans[..., 0])
    return np.where(defined, mean, np.nan)


def stability(candidate: Ints) -> tuple[Ints, Ints]:
    """Compute `run` and `changes` at every step; steps without a candidate leave them unchanged.

    (…, T) -> (…, T) each
    """
    seen = candidate != NONE
    steps = np.arange(candidate.shape[-1])
    last_seen = np.maximum.accumulate(np.where(seen, steps, -1), axis=-1)  # -1 before the first
    before = np.roll(last_seen, 1, axis=-1)
    before[..., 0] = -1
    previous = np.take_along_axis(candidate, np.maximum(before, 0), axis=-1)
    is_change = seen & (before >= 0) & (candidate != previous)
    extractions = np.cumsum(seen, axis=-1)
    # Extractions before the last change do not count towards the current run.
    at_change = np.maximum.accumulate(np.where(is_change, extractions - 1, 0), axis=-1)
    run = (extractions - at_change).astype(np.int32)
    return run, np.cumsum(is_change, axis=-1).astype(np.int32)


def consecutive(holds: BoolArray) -> Ints:
    """Number of consecutive steps, up to each step, at which a condition held. (…, T)"""
    steps = np.arange(1, holds.shape[-1] + 1, dtype=np.int32)
    broken = np.maximum.accumulate(np.where(holds, 0, steps), axis=-1)
    return (steps - broken).astype(np.int32)


def stabilization_step(s: Signals) -> Ints:
    """s_j, the step from which every candidate is the full decode's answer. (…, T) -> (…)

    The trajectory's steps plus one if the last candidate is missing or differs from the answer:
    a box, or the start of a number, may lie before the tail, where no gate looks.
    """
    answer = s.last("answer")
    agrees = (s.candidate == answer) & (answer != NONE)
    run = consecutive(agrees | ~s.exists)[..., -1]  # padding counts as agreement
    return (s.candidate.shape[-1] - run + 1).astype(np.int32)


def are_premature(exits: Ints, stabilization: Ints, steps: Ints) -> list[bool | None]:
    """Whether each exit came before the answer settled; exit 0 means none, so never premature.

    None if the answer never settles within the trajectory's steps, because no exit is then late
    enough. Rates of premature exits exclude such trajectories. (n,) each
    """
    early = (exits > 0) & (exits < stabilization)
    settles = stabilization <= steps
    return [bool(at) if known else None for at, known in zip(early, settles, strict=True)]


MARGINS = frozenset(
    name for name in SIGNAL_NAMES if name.startswith(("masked", "tail_", "region_"))
) | {"changed", "length"}
"""Names of the signals that `margin_signals` computes."""


def margin_signals(cells: Cells, reader: CandidateReader) -> dict[str, npt.NDArray[Any]]:
    """Compute the signals that depend only on gaps, masks and tokens. Cells are (…, T, L)."""
    *_, length = cells.token.shape
    steps = cells.token.shape[:-1]
    tail = slice(reader.tail_start, length)
    changed = np.ones(cells.token.shape, dtype=np.bool_)
    changed[..., 1:, :] = cells.token[..., 1:, :] != cells.token[..., :-1, :]
    return {
        "region_gap": cells.gap[..., reader.region].mean(axis=-1, dtype=np.float64),
        "length": np.full(steps, length, dtype=np.int32),
        "tail_length": np.full(steps, length - reader.tail_start, dtype=np.int32),
        **_masked_signals("", cells.gap, cells.masked, changed),
        **_masked_signals(
            "tail_", cells.gap[..., tail], cells.masked[..., tail], changed[..., tail]
        ),
    }


def _masked_signals(
    prefix: str, gap: FloatArray, masked: BoolArray, changed: BoolArray
) -> dict[str, npt.NDArray[Any]]:
    """Aggregates over the masked positions of a region. (…, T, R) each."""
    count = masked.sum(axis=-1, dtype=np.int32)
    ordered = np.sort(np.where(masked, gap, np.float32(np.inf)), axis=-1)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = np.where(masked, gap, np.float32(0)).sum(axis=-1, dtype=np.float64) / count
        share = (changed & masked).sum(axis=-1) / count
    return {
        f"{prefix}masked": count,
        f"{prefix}masked_gap": mean,
        f"{prefix}masked_gap_median": _lower_median(ordered, count),
        f"{prefix}masked_gap_quantile": _quantile(ordered, count, QUANTILE),
        f"{prefix}changed": share,
    }


def _lower_median(ordered: FloatArray, count: Ints) -> Floats:
    """Lower median of each row's first `count` numbers; NaN if there are none."""
    middle = (np.maximum(count, 1) - 1) // 2
    values = np.take_along_axis(ordered, middle[..., None].astype(np.int64), axis=-1)[..., 0]
    return np.where(count > 0, values.astype(np.float64), np.nan)


def _quantile(ordered: FloatArray, count: Ints, q: float) -> Floats:
    """Interpolated quantile of each row's first `count` numbers; NaN if there are none."""
    last = np.maximum(count - 1, 0)
    place = q * last
    below = np.floor(place).astype(np.int64)
    above = np.minimum(below + 1, last)
    pair = np.stack([below, above], axis=-1)
    values = np.take_along_axis(ordered, pair, axis=-1).astype(np.float64)
    low, high = values[..., 0], values[..., 1]
    with np.errstate(invalid="ignore"):
        return np.where(count > 0, low + (high - low) * (place - below), np.nan)
