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

    def candidate(self, ids: TokenArray) -> Found | None:
        """The candidate in a filled prediction. (L,)"""
        key = ids.tobytes()
        if key not in self._candidates:
            self._candidates[key] = self._read(ids)
        return self._candidates[key]

    def answer(self, ids: TokenArray) -> str | None:
        """What a grader would find in a filled prediction: the whole text is read."""
        key = ids.tobytes()
        if key not in self._answers:
            found = self.task.extract(self.vocabulary.text(ids.tolist()))
            self._answers[key] = found.value if found else None
        return self._answers[key]

    def forget(self) -> None:
        """Drop what was read, so that memory does not grow with the number of trajectories."""
        self._candidates.clear()
        self._answers.clear()

    def _read(self, ids: TokenArray) -> Found | None:
        start = self.tail_start if self.task.search is SearchMode.LAST else 0
        visible = ids[: self.vocabulary.ending(ids.tolist())]
        traced = self.vocabulary.trace(visible[start:].tolist())
        found = self.task.extract(traced.text)
        if found is None:
            return None
        tokens = traced.token_span(found.start, found.end)
        if tokens is None:
            return Found(found.value, None)
        first, last = tokens[0] + start, tokens[1] + start
        if self.task.search is SearchMode.FIRST5 and first >= FIRST_POSITIONS:
            return Found(found.value, None)
        return Found(found.value, (first, last))


def filled_predictions(token: TokenArray, masked: BoolArray) -> TokenArray:
    """What the buffer would be if decoding ended at each step. (T, L) each.

    A masked position takes its prediction; any other keeps what it predicted at the last step
    at which it was masked, which is what was committed.
    """
    steps = np.arange(len(token))[:, None]
    committed_at = np.maximum.accumulate(np.where(masked, steps, 0), axis=0)
    filled: TokenArray = np.take_along_axis(token, committed_at, axis=0)
    return filled
