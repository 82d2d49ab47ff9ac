"""Signals: what every step of a trajectory says, as arrays that no threshold can change.

Means are sums of fixed-point numbers, exact in float64 whatever their order, so a recording and
a live decode give the same bits.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import numpy.typing as npt

from c4.record import BoolArray, Cells, FloatArray, StepView, TokenArray, stack_views
from c4.replay._candidates import CandidateReader, Found, filled_predictions
from c4.tasks import SearchMode, Shape

Ints = npt.NDArray[np.int32]
Longs = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

NONE = -1
"""Stands for no candidate, no answer, no span and no grade."""
QUANTILE = 0.2
"""Of the masked gaps; the default of SchED's release."""


@dataclass(frozen=True)
class Signals:
    """One trajectory's steps, or those of many stacked. Arrays are (…, T)."""

    step: Ints
    """1…T."""
    budget: Ints
    """Steps of the full decode."""
    candidate: Ints
    """Which of the trajectory's candidate values is read; -1 where there is none."""
    span_start: Ints
    span_end: Ints
    """Positions that hold the candidate; -1 where they cannot be located."""
    confidence: Floats
    """Mean over the span; NaN where it has none, or reaches beyond the current block."""
    entropy: Floats
    """Mean over the span, in nats; NaN where the confidence is."""
    run: Ints
    """Consecutive extractions with the present value."""
    changes: Ints
    """How often the value differed from the previous extraction's."""
    region_gap: Floats
    """Mean gap over the task's region, masked or not."""
    masked: Ints
    """Masked positions when the step began."""
    masked_gap: Floats
    """Mean gap over them; NaN where there are none."""
    masked_gap_median: Floats
    masked_gap_quantile: Floats
    """Their quantile at `QUANTILE`, the cautious end."""
    changed: Floats
    """Share of them that predict another token than a step before; 1 at the first step."""
    tail_masked: Ints
    tail_masked_gap: Floats
    tail_masked_gap_median: Floats
    tail_masked_gap_quantile: Floats
    tail_changed: Floats
    """The same over the tail alone."""
    tail_length: Ints
    length: Ints
    """Positions of the tail, and of the generation."""
    answer: Ints
    """Which of the trajectory's answers the filled buffer holds; -1 where it holds none."""

    @property
    def progress(self) -> Floats:
        """Share of the budget spent, the present step included."""
        return self.step / self.budget


@dataclass(frozen=True)
class SignalReading:
    """A trajectory's signals, and what their candidate and answer numbers stand for."""

    signals: Signals
    candidates: list[str]
    answers: list[str]


def read_signals(cells: Cells, shape: Shape, reader: CandidateReader) -> SignalReading:
    """All signals of a recorded trajectory."""
    filled = filled_predictions(cells.token, cells.masked)
    steps = len(filled)
    # A prediction that is that of the step before has been read already.
    fresh = np.append(True, (filled[1:] != filled[:-1]).any(axis=1))
    which = np.cumsum(fresh) - 1  # (T,)
    rows = filled[fresh]
    found = [reader.candidate(row) for row in rows]
    candidate, candidates = number([f.value if f else None for f in found])
    answer, answers = number([reader.answer(row) for row in rows])
    block = np.arange(steps) // shape.steps_per_block
    spans = span_signals(cells, [found[i] for i in which], (block + 1) * shape.block)
    candidate = heard(candidate[which], spans["confidence"], reader)
    run, changes = stability(candidate)
    signals = Signals(
        step=np.arange(1, steps + 1, dtype=np.int32),
        budget=np.full(steps, shape.steps, dtype=np.int32),
        candidate=candidate,
        run=run,
        changes=changes,
        answer=answer[which],
        **spans,
        **margin_signals(cells, reader),
    )
    return SignalReading(signals, candidates, answers)


class LiveSignals:
    """The same signals inside a decode, one step at a time."""

    def __init__(self, shape: Shape, reader: CandidateReader) -> None:
        self.shape = shape
        self.reader = reader
        self._columns: dict[str, npt.NDArray[Any]] = {
            field.name: np.empty(shape.steps, np.int32 if field.type == Ints else np.float64)
            for field in fields(Signals)
        }
        self._numbers: tuple[dict[str, int], dict[str, int]] = ({}, {})
        self._before: StepView | None = None
        self._filled: TokenArray | None = None

    def append(self, view: StepView) -> Signals:
        """The signals of all steps so far, the present one last."""
        t = view.step - 1
        kept = view.token if self._filled is None else self._filled
        filled = np.where(view.masked, view.token, kept)
        found, answer = self.reader.candidate(filled), self.reader.answer(filled)
        now = stack_views([view])
        spans = span_signals(now, [found], np.array([(view.block + 1) * self.shape.block]))
        candidate = np.array([self._number(0, found.value if found else None)], dtype=np.int32)
        both = now if self._before is None else stack_views([self._before, view])
        row = {
            "step": view.step,
            "budget": self.shape.steps,
            "candidate": heard(candidate, spans["confidence"], self.reader)[0],
            "answer": self._number(1, answer),
            **{name: column[0] for name, column in spans.items()},
            **{name: column[-1] for name, column in margin_signals(both, self.reader).items()},
        }
        for name, value in row.items():
            self._columns[name][t] = value
        run, changes = stability(self._columns["candidate"][: t + 1])
        self._columns["run"][t], self._columns["changes"][t] = run[-1], changes[-1]
        self._before, self._filled = view, filled
        return Signals(**{name: column[: t + 1] for name, column in self._columns.items()})

    def _number(self, kind: int, value: str | None) -> int:
        known = self._numbers[kind]
        return NONE if value is None else known.setdefault(value, len(known))


def number(values: Sequence[str | None]) -> tuple[Ints, list[str]]:
    """Values as numbers in order of appearance, None as -1; and the values themselves."""
    known: dict[str, int] = {}
    numbers = [NONE if value is None else known.setdefault(value, len(known)) for value in values]
    return np.array(numbers, dtype=np.int32), list(known)


def heard(candidate: Ints, confidence: Floats, reader: CandidateReader) -> Ints:
    """The candidates that count. Code whose confidence is undefined is not yet a candidate: its
    provisional tail would pile up changes.
    """
    if reader.task.search is not SearchMode.CODE:
        return candidate
    return np.where(np.isnan(confidence), np.int32(NONE), candidate)


def span_signals(
    cells: Cells, found: Sequence[Found | None], block_ends: Longs
) -> dict[str, npt.NDArray[Any]]:
    """What depends on the positions that hold the candidate."""
    spans = np.array([f.span if f and f.span else (NONE, NONE) for f in found])  # (T, 2)
    defined = (spans[:, 0] >= 0) & (spans[:, 1] <= block_ends)
    return {
        "span_start": spans[:, 0].astype(np.int32),
        "span_end": spans[:, 1].astype(np.int32),
        "confidence": _span_mean(cells.confidence, spans, defined),
        "entropy": _span_mean(cells.entropy, spans, defined),
    }


def _span_mean(signal: FloatArray, spans: Longs, defined: BoolArray) -> Floats:
    """Mean over each step's span, NaN where it is not defined. (T, L) -> (T,)"""
    sums = np.zeros((len(signal), signal.shape[1] + 1))
    np.cumsum(signal, axis=1, dtype=np.float64, out=sums[:, 1:])
    steps = np.arange(len(signal))
    total = sums[steps, spans[:, 1]] - sums[steps, spans[:, 0]]
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(defined, total / (spans[:, 1] - spans[:, 0]), np.nan)


def stability(candidate: Ints) -> tuple[Ints, Ints]:
    """`run` and `changes` after every step; a step without a candidate leaves both as they are."""
    seen = np.flatnonzero(candidate != NONE)
    values = candidate[seen]
    is_change = np.append(False, values[1:] != values[:-1])[: len(values)]
    order = np.arange(len(values))
    started = np.maximum.accumulate(np.where(is_change, order, 0))
    # One entry more, for the steps before the first candidate.
    run = np.append(0, order - started + 1).astype(np.int32)
    changes = np.append(0, np.cumsum(is_change)).astype(np.int32)
    extractions = np.cumsum(candidate != NONE)
    return run[extractions], changes[extractions]


def margin_signals(cells: Cells, reader: CandidateReader) -> dict[str, npt.NDArray[Any]]:
    """What depends on gaps, masks and tokens alone."""
    steps, length = cells.shape
    tail = slice(reader.tail_start, length)
    changed = np.append(np.ones((1, length), bool), cells.token[1:] != cells.token[:-1], axis=0)
    return {
        "region_gap": cells.gap[:, reader.region].mean(axis=1, dtype=np.float64),
        "length": np.full(steps, length, dtype=np.int32),
        "tail_length": np.full(steps, length - reader.tail_start, dtype=np.int32),
        **_masked_signals("", cells.gap, cells.masked, changed),
        **_masked_signals("tail_", cells.gap[:, tail], cells.masked[:, tail], changed[:, tail]),
    }


def _masked_signals(
    prefix: str, gap: FloatArray, masked: BoolArray, changed: BoolArray
) -> dict[str, npt.NDArray[Any]]:
    """Aggregates over the masked positions of a region. (T, R) each."""
    count = masked.sum(axis=1, dtype=np.int32)
    ordered = np.sort(np.where(masked, gap, np.inf).astype(np.float64), axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = np.where(masked, gap, 0).sum(axis=1, dtype=np.float64) / count
        share = (changed & masked).sum(axis=1) / count
    return {
        f"{prefix}masked": count,
        f"{prefix}masked_gap": mean,
        f"{prefix}masked_gap_median": _quantile(ordered, count, 0.5),
        f"{prefix}masked_gap_quantile": _quantile(ordered, count, QUANTILE),
        f"{prefix}changed": share,
    }


def _quantile(ordered: Floats, count: Ints, q: float) -> Floats:
    """The quantile of each row's first `count` numbers, interpolated; NaN where there are none."""
    place = q * np.maximum(count - 1, 0)
    below = np.floor(place).astype(np.int64)
    above = np.minimum(below + 1, np.maximum(count - 1, 0))
    rows = np.arange(len(ordered))
    low, high = ordered[rows, below], ordered[rows, above]
    with np.errstate(invalid="ignore"):
        return np.where(count > 0, low + (high - low) * (place - below), np.nan)
