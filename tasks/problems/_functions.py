"""What the two code tasks share: kinds of functions, and assertions that tell them apart."""

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

LETTERS = "aeilnorst"
WORDS = (
    "it", "on", "sea", "aim", "ten", "east", "rain", "Nest", "Area", "noon", "stone", "orate",
    "least", "tiles", "street", "listen", "Oranges", "lessons", "triangle", "instance",
    "telescope", "Iterative", "relational", "nationwide",
)  # fmt: skip
"""Of two to ten letters, so that lengths around every k occur."""


@dataclass(frozen=True)
class Kind:
    """One function, in words and in code; `{k}`, `{m}`, `{c}`, `{d}` stand for its constants."""

    entries: str
    """Names it may have."""
    takes: str
    """One letter per argument: n (a number), s (a small one), l (a list of numbers), t (a text)."""
    text: str
    body: str
    compute: Callable[..., Any]
    """Constants first, then arguments: compute(constants, *arguments)."""


@dataclass(frozen=True)
class Constants:
    """k is small, m greater than k; c and d are two letters."""

    k: int
    m: int
    c: str
    d: str

    def used(self, kind: Kind) -> tuple[object, ...]:
        """The constants that this kind mentions."""
        return tuple(value for name, value in vars(self).items() if f"{{{name}}}" in kind.body)

    def neighbours(self) -> list["Constants"]:
        """What a careless reader might use instead."""
        k, m, c, d = self.k, self.m, self.c, self.d
        steps = [Constants(k + i, m + j, c, d) for i, j in ((1, 0), (-1, 0), (0, 1), (0, -1))]
        return [*steps, Constants(k, m, d, c)]


def draw_constants(rng: random.Random) -> Constants:
    c, d = rng.sample(LETTERS, 2)
    return Constants(rng.randint(2, 9), rng.randint(10, 40), c, d)


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
