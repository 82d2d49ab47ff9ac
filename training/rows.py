"""Rows: one lesson in tokens, drawn as a phase of the training asks for it."""

import re
from dataclasses import dataclass

import numpy as np

from c4.tasks.problems import equation
from training.codec import Codec
from training.lessons import lesson, shape_of
from training.settings import LETTER_TASKS, PhaseSettings, Settings

CHOICE = r"^[A-M]\. .+$"
"""A line of a prompt that offers a choice."""


@dataclass(frozen=True)
class Row:
    """One lesson in tokens: `ids` are the prompt, the response and its end tokens.

    Or, if there are `choices`, the prompt alone.
    """

    task: str
    ids: list[int]
    prompt: int
    """Length of the prompt."""
    response: int
    """Length of the response without end tokens."""
    probed: bool
    """Asked for by probes if true, else masked in the sequence itself."""
    has_letter: bool = False
    """Whether the response begins with the letter that is the answer."""
    choices: tuple[list[int], ...] = ()
    """Letter and text of each, if their letters are asked for instead of a response."""
    results: tuple[int, ...] = ()
    """Where in `ids` the results of calculations stand, if only these are masked."""

    @property
    def cost(self) -> int:
        """Positions that it takes in a batch."""
        probe = len(self.ids) - self.prompt if self.probed else 0
        return len(self.ids) + probe + sum(map(len, self.choices))


@dataclass(frozen=True)
class RowMaker:
    """Makes the rows of one phase."""

    settings: Settings
    codec: Codec
    phase: PhaseSettings

    def row(self, task: str, index: int, probed: bool, rng: np.random.Generator) -> Row:
        """The problem of this number, with a response or with its choices alone."""
        one = lesson(task, index)
        prompt = self.codec.prompt(one.example.prompt)
        if probed and task in LETTER_TASKS and rng.random() < self.phase.lookup_share:
            return self._choices_row(task, one.example.prompt)
        response = self.codec.response(one.response)
        ends = self.settings.probe_ends
        if not probed:
            ends = max(1, self._length(task, len(response), rng) - len(response))
        return Row(
            task,
            ids=prompt + response + [self.codec.end] * ends,
            prompt=len(prompt),
            response=len(response),
            probed=probed,
            has_letter=task in LETTER_TASKS,
        )

    def sheet(self, rng: np.random.Generator) -> Row:
        """A sheet of calculations as the solutions write them, their results to be filled in."""
        prompt = self.codec.prompt("")
        ids, results = list(prompt), []
        for _ in range(self.settings.sheet_calculations):
            left, operator, right = draw_calculation(rng)
            tokens = self.codec.response(f" {equation(left, operator, right)}")
            last = max(i for i, token in enumerate(tokens) if token in self.codec.numbers)
            results.append(len(ids) + last)
            ids += tokens
        return Row(
            "calculations",
            ids=ids,
            prompt=len(prompt),
            response=len(ids) - len(prompt),
            probed=False,
            results=tuple(results),
        )

    def _choices_row(self, task: str, text: str) -> Row:
        """A prompt without a response, every choice of which is asked for its letter."""
        prompt = self.codec.prompt(text)
        lines = re.findall(CHOICE, text, flags=re.MULTILINE)
        if not lines:
            raise ValueError(f"{task}: no choices in {text!r}")
        choices = tuple(self.codec.response(line) for line in lines)
        return Row(task, ids=prompt, prompt=len(prompt), response=0, probed=True, choices=choices)

    def _length(self, task: str, response: int, rng: np.random.Generator) -> int:
        """How many positions are generated: the family's length, now and then another."""
        shape = shape_of(task)
        if rng.random() >= self.settings.varied_length_share:
            return shape.length
        low = max(response + 1, shape.length - 2 * shape.block_length)
        return int(rng.integers(low, max(low, shape.length + shape.block_length) + 1))


def draw_calculation(rng: np.random.Generator) -> tuple[int, str, int]:
    """A calculation of the kind that the worked solutions hold: left, operator, right."""
    kind = rng.integers(9)
    if kind < 3:
        return int(rng.integers(2, 25)), "+", int(rng.integers(2, 25))
    if kind < 5:
        right = int(rng.integers(2, 25))
        return right + int(rng.integers(1, 32)), "-", right
    if kind == 5:
        return int(rng.integers(2, 9)), "*", int(rng.integers(2, 9))
    if kind == 6:
        right = int(rng.integers(2, 9))
        return right * int(rng.integers(2, 14)), "/", right
    return int(rng.integers(9, 65)), "+", int(rng.integers(9, 21))
