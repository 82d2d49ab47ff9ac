"""The candidate: what the task's extractor reads in a prediction, and the tokens that hold it.

One reader serves recordings and live decodes, so the two cannot disagree.
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
"""Share of the generation, at its end, in which `last` looks."""
FIRST_WINDOW, WINDOW_GROWTH = 8, 4
"""Tokens read at first, and the factor by which a window that was too small grows."""
MOST_REMEMBERED = 20_000
"""Windows that a reader remembers at one time, so that memory stays bounded."""


@dataclass(frozen=True)
class LocatedCandidate:
    """A candidate at one step."""

    value: str
    span: tuple[int, int] | None
    """Its positions, as (first, one past the last); None if they cannot be located."""


Window = tuple[int, int]
"""Consecutive positions, as (first, one past the last)."""
Look = tuple[LocatedCandidate | None, bool]
"""What a window holds, and whether more tokens around it could not change that."""


class CandidateReader:
    """Reads candidates and answers off predictions of one task and one length, in one way.

    Most answers are known from a few tokens: the last number needs the end of a text, the first
    letter its beginning. So a small window is read first, and a larger one only where the
    extractor says that more text could change what it found. Each distinct window is read once,
    and only all of the tokens where a part of them is never conclusive.
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
        self._windows: dict[int, list[Window]] = {}  # few of all stops occur in a decode
        self._looks: dict[tuple[Choices, int, bytes], Look] = {}

    @property
    def region(self) -> slice:
        """Where a margin gate looks: the tail, the first five positions, or everything."""
        return {
            SearchMode.LAST: slice(self.tail_start, self.length),
            SearchMode.FIRST5: slice(0, FIRST_POSITIONS),
            SearchMode.CODE: slice(0, self.length),
        }[self.task.search]

    def read(
        self, rows: TokenArray, choices: Sequence[Choices]
    ) -> list[tuple[LocatedCandidate | None, str | None]]:
        """The candidate, and the answer that a grader would find, in filled predictions.

        Args:
            rows: (R, L)
            choices: what the example of each row offers. (R,)
        """
        if len(self._looks) > MOST_REMEMBERED:
            self._looks.clear()
        stops = self._stops(rows)
        return [
            self._read(row.tobytes(), stop, offered)
            for row, stop, offered in zip(rows, stops, choices, strict=True)
        ]

    def _stops(self, rows: TokenArray) -> list[int]:
        """The number of tokens of each row that can contribute text. (R, L) -> (R,)"""
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
        """The candidate in the tokens before `stop`."""
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
        """What is read of the tokens before `stop`, one window after the other; the last is all.

        The windows of a task that takes the last match end at `stop`, and the tail is one of
        them; all others begin at 0.
        """
        sizes = [stop]
        may_read_parts = reads_parts(self.task, self.reading.style)
        if may_read_parts and self.vocabulary.by_bytes:  # else a part may spell another text
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
    """What the buffer would be if decoding ended at each step. (…, T, L) each.

    A masked position takes its prediction; any other keeps what it predicted at the last step
    at which it was masked, which is what was committed.
    """
    steps = np.arange(token.shape[-2])[:, None]
    committed_at = np.maximum.accumulate(np.where(masked, steps, 0), axis=-2)
    filled: TokenArray = np.take_along_axis(token, committed_at, axis=-2)
    return filled
