"""The candidate: the answer that the task's extractor finds in a prediction, and its tokens.

Recordings and live decodes use the same reader, so they cannot disagree.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from c4.store.arrays import BoolArray, TokenArray
from c4.tasks import AnswerReading, Ending, SearchMode, Task
from c4.tasks.reading.extractors import read_under, reads_parts
from c4.tasks.task import Choices
from c4.tasks.vocabulary import Vocabulary

TOKEN = np.dtype(np.int32)
FIRST_POSITIONS = 5
"""A letter has a span only if it starts within this many positions."""
TAIL_FRAC = 0.3
"""Fraction of the generation, at its end, that `SearchMode.LAST` searches."""
FIRST_WINDOW, WINDOW_GROWTH = 8, 4
"""Number of tokens in the first window, and growth factor of each next window."""
MOST_REMEMBERED = 20_000
"""Maximum number of windows that a reader caches, which bounds its memory."""


@dataclass(frozen=True)
class LocatedCandidate:
    """A candidate at one step."""

    value: str
    span: tuple[int, int] | None
    """Positions as (first, one past the last); None if they cannot be located."""


Window = tuple[int, int]
"""Consecutive positions, as (first, one past the last)."""
Look = tuple[LocatedCandidate | None, bool]
"""The candidate in a window, and whether it is conclusive: more tokens could not change it."""


class CandidateReader:
    """Extracts candidates and answers from predictions of one task and length, under one reading.

    A few tokens decide most answers: the last number needs the end of a text, the first letter
    its beginning. So a small window is read first, and a larger one only if the extractor reports
    that more text could change the result. Small windows are skipped if they are never conclusive.
    Each distinct window is read once.
    """

    def __init__(
        self,
        task: Task,
        vocabulary: Vocabulary,
        length: int,
        reading: AnswerReading,
        tail_frac: float = TAIL_FRAC,
    ) -> None:
        self.task = read_under(task, reading.style)
        self.vocabulary = vocabulary
        self.length = length
        self.reading = reading
        self.tail_start = int(length * (1 - tail_frac))
        self._find = self.task.extract
        self._ends = sorted(vocabulary.end_ids)
        self._from = self.tail_start if self.task.search is SearchMode.LAST else 0
        self._windows: dict[int, list[Window]] = {}  # a decode has few distinct stops
        self._looks: dict[tuple[Choices, int, bytes], Look] = {}

    @property
    def region(self) -> slice:
        """Positions that margin gates use: the tail, the first five, or all."""
        return {
            SearchMode.LAST: slice(self.tail_start, self.length),
            SearchMode.FIRST5: slice(0, FIRST_POSITIONS),
            SearchMode.CODE: slice(0, self.length),
        }[self.task.search]

    def read(
        self, rows: TokenArray, choices: Sequence[Choices]
    ) -> list[tuple[LocatedCandidate | None, str | None]]:
        """Return the candidate and the answer that a grader would find in each filled prediction.

        Args:
            rows: (R, L)
            choices: answer choices of each row's example. (R,)
        """
        if len(self._looks) > MOST_REMEMBERED:
            self._looks.clear()
        stops = self._stops(rows)
        return [
            self._read(row.tobytes(), stop, offered)
            for row, stop, offered in zip(rows, stops, choices, strict=True)
        ]

    def _stops(self, rows: TokenArray) -> list[int]:
        """Number of leading tokens of each row that can contribute text. (R, L) -> (R,)"""
        is_end, length = np.isin(rows, self._ends), rows.shape[1]
        if self.reading.ending is Ending.CUT:
            stops = np.where(is_end.any(axis=1), is_end.argmax(axis=1), length)
        else:
            after_text = length - (~is_end)[:, ::-1].argmax(axis=1)
            stops = np.where(is_end.all(axis=1), 0, after_text)
        return stops.tolist()

    def _read(
        self, row: bytes, stop: int, choices: Choices
    ) -> tuple[LocatedCandidate | None, str | None]:
        """Return the candidate and the answer in the tokens before `stop`."""
        candidate = found = None
        if stop not in self._windows:
            self._windows[stop] = self._windows_before(stop)
        for window in self._windows[stop]:
            found, conclusive = self._look(row, window, choices)
            if window[0] >= self._from:
                candidate = found
            if conclusive:
                break
        return candidate, found.value if found else None

    def _windows_before(self, stop: int) -> list[Window]:
        """Windows of the tokens before `stop`, in reading order; the last one covers all of them.

        If the task takes the last match, its windows end at `stop`, and the tail is one of
        them; otherwise windows begin at 0.
        """
        sizes = [stop]
        may_read_parts = reads_parts(self.task, self.reading.style)
        if may_read_parts and self.vocabulary.by_bytes:  # otherwise a part may decode to other text
            size = FIRST_WINDOW
            while size < stop:
                sizes.append(size)
                size *= WINDOW_GROWTH
            sizes.sort()
        if self.task.search is not SearchMode.LAST:
            return [(0, size) for size in sizes]
        starts = {stop - size for size in sizes} | {min(self.tail_start, stop)}
        return [(start, stop) for start in sorted(starts, reverse=True)]

    def _look(self, row: bytes, window: Window, choices: Choices) -> Look:
        start, stop = window
        width = TOKEN.itemsize
        tokens = row[start * width : stop * width]
        known = self._looks.get((choices, start, tokens))
        if known is None:
            known = self._extract(np.frombuffer(tokens, TOKEN).tolist(), start, choices)
            self._looks[choices, start, tokens] = known
        return known

    def _extract(self, tokens: list[int], start: int, choices: Choices) -> Look:
        traced = self.vocabulary.trace(tokens, self.reading.ending)
        found = self._find(traced.text, choices)
        if found is None:
            return None, False
        span = traced.token_span(found.start, found.end)
        if span and self.task.search is SearchMode.FIRST5 and span[0] >= FIRST_POSITIONS:
            span = None
        if span:
            span = (span[0] + start, span[1] + start)
        return LocatedCandidate(found.value, span), found.conclusive


def filled_predictions(token: TokenArray, masked: BoolArray) -> TokenArray:
    """Buffer contents if decoding ended at each step. (…, T, L) each.

    A masked position takes its current prediction. A committed position keeps the prediction of
    the last step at which it was masked, which is the committed token.
    """
    steps = np.arange(token.shape[-2])[:, None]
    committed_at = np.maximum.accumulate(np.where(masked, steps, 0), axis=-2)
    filled: TokenArray = np.take_along_axis(token, committed_at, axis=-2)
    return filled
