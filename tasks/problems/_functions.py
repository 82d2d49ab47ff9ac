"""What the two code tasks share: kinds of functions, and assertions that tell them apart."""

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

WORDS = (
    "it", "on", "sea", "aim", "ten", "east", "rain", "Nest", "Area", "noon", "stone", "orate",
    "least", "tiles", "street", "listen", "Oranges", "lessons", "triangle", "instance",
    "telescope", "Iterative", "relational", "nationwide",
)  # fmt: skip
"""Of two to ten letters, so that lengths around every k occur."""


@dataclass(frozen=True)
class Kind:
    """One function, in words and in code; `{k}` and `{m}` stand for its constants."""

    words: str
    """Its name, and two it might have had: what is held out of training depends on all three."""
    takes: str
    """One letter per argument: n (a number), s (a small one), l (a list of numbers), t (a text)."""
    text: str
    body: str
    compute: Callable[..., Any]
    """Constants first, then arguments: compute(constants, *arguments)."""

    @property
    def name(self) -> str:
        return self.words.split()[0]


@dataclass(frozen=True)
class Constants:
    """k is small, m greater than k."""

    k: int
    m: int

    def used(self, kind: Kind) -> tuple[object, ...]:
        """The constants that this kind mentions."""
        return tuple(value for name, value in vars(self).items() if f"{{{name}}}" in kind.body)

    def neighbours(self) -> list["Constants"]:
        """What a careless reader might use instead."""
        steps = ((1, 0), (-1, 0), (0, 1), (0, -1))
        return [Constants(self.k + i, self.m + j) for i, j in steps]


def draw_constants(rng: random.Random) -> Constants:
    return Constants(rng.randint(2, 9), rng.randint(10, 60))


def draw_cases(
    rng: random.Random, kind: Kind, constants: Constants, count: int
) -> list[tuple[tuple[Any, ...], Any]]:
    """Arguments with results; the unchanged argument or another constant would not pass."""
    while True:
        calls = [
            tuple(_argument(rng, letter, constants) for letter in kind.takes) for _ in range(count)
        ]
        results = [kind.compute(constants, *call) for call in calls]
        rivals = [[call[0] for call in calls], [results[0]] * count]
        for other in constants.neighbours():
            if other.used(kind) != constants.used(kind):
                rivals.append([kind.compute(other, *call) for call in calls])
        if results not in rivals:
            return list(zip(calls, results, strict=True))


def assertion(name: str, call: tuple[Any, ...], result: object) -> str:
    return f"assert {name}({', '.join(map(repr, call))}) == {result!r}"


def _argument(rng: random.Random, letter: str, constants: Constants) -> object:
    k, m = constants.k, constants.m
    near = [k - 1, k, k + 1, 2 * k, m - 1, m, m + 1, rng.randint(1, 30)]
    if letter == "n":
        return rng.choice(near)
    if letter == "s":
        return rng.randint(2, 6)
    if letter == "l":
        return [rng.choice(near) for _ in range(rng.randint(4, 5))]
    of_length_k = [word for word in WORDS if len(word) in (k, k + 1)]
    return rng.choice(rng.choice((WORDS, of_length_k)))
