"""The candidate: what the task's extractor reads in a prediction, and which tokens hold it.

One reader serves recordings and live decodes, so the two cannot disagree. Adjacent steps mostly
predict the same text; each distinct prediction is read once.
"""

from dataclasses import dataclass

import numpy as np

from c4.record import BoolArray, TokenArray, Vocabulary
from c4.tasks import SearchMode, Task

FIRST_POSITIONS = 5
"""A letter has a span only if it starts within this many positions."""
TAIL_FRAC = 0.3
"""Share of the generation, at its end, in which `last` looks."""


MOST_REMEMBERED = 20_000
"""Texts a reader keeps at one time, so that memory does not grow with the trajectories."""


@dataclass(frozen=True)
class Found:
    """A candidate at one step."""

    value: str
    span: tuple[int, int] | None
    """Its positions, as (first, one past the last); None where they cannot be located."""


class CandidateReader:
    """Reads candidates and answers off predictions of one task and one length."""

    def __init__(
        self, task: Task, vocabulary: Vocabulary, length: int, tail_frac: float = TAIL_FRAC
    ) -> None:
        self.task = task
        self.vocabulary = vocabulary
        self.length = length
        self.tail_start = int(length * (1 - tail_frac))
        self._ends = np.array(sorted(vocabulary.end_ids), dtype=np.int32)
        self._candidates: dict[bytes, Found | None] = {}
        self._answers: dict[bytes, str | None] = {}

    @property
    def region(self) -> slice:
        """Where a margin gate looks: the tail, the first five positions, or everything."""
        return {
            SearchMode.LAST: slice(self.tail_start, self.length),
            SearchMode.FIRST5: slice(0, FIRST_POSITIONS),
            SearchMode.CODE: slice(0, self.length),
        }[self.task.search]

    def read(self, rows: TokenArray) -> list[tuple[Found | None, str | None]]:
        """The candidate, and the answer that a grader would find, in filled predictions. (R, L)"""
        is_end = np.isin(rows, self._ends)
        stops = np.where(is_end.any(axis=1), is_end.argmax(axis=1), rows.shape[1])
        return [self._read(row[:stop]) for row, stop in zip(rows, stops.tolist(), strict=True)]

    def _read(self, visible: TokenArray) -> tuple[Found | None, str | None]:
        """What a text says; `visible` are the tokens before the first end. Each is read once."""
        if len(self._candidates) + len(self._answers) > MOST_REMEMBERED:
            self._candidates.clear()
            self._answers.clear()
        start = self.tail_start if self.task.search is SearchMode.LAST else 0
        key = visible[start:].tobytes()
        if key not in self._candidates:
            self._candidates[key] = self._find(visible[start:].tolist(), start)
        found = self._candidates[key]
        if start == 0:  # the candidate was looked for in the whole text
            return found, found.value if found else None
        whole = visible.tobytes()
        if whole not in self._answers:
            answer = self.task.extract(self.vocabulary.spell(visible.tolist()))
            self._answers[whole] = answer.value if answer else None
        return found, self._answers[whole]

    def _find(self, tokens: list[int], start: int) -> Found | None:
        traced = self.vocabulary.trace(tokens)
        found = self.task.extract(traced.text)
        if found is None:
            return None
        span = traced.token_span(found.start, found.end)
        if span is None:
            return Found(found.value, None)
        first, last = span[0] + start, span[1] + start
        if self.task.search is SearchMode.FIRST5 and first >= FIRST_POSITIONS:
            return Found(found.value, None)
        return Found(found.value, (first, last))


def filled_predictions(token: TokenArray, masked: BoolArray) -> TokenArray:
    """What the buffer would be if decoding ended at each step. (…, T, L) each.

    A masked position takes its prediction; any other keeps what it predicted at the last step
    at which it was masked, which is what was committed.
    """
    steps = np.arange(token.shape[-2])[:, None]
    committed_at = np.maximum.accumulate(np.where(masked, steps, 0), axis=-2)
    filled: TokenArray = np.take_along_axis(token, committed_at, axis=-2)
    return filled
