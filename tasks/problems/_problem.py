"""What every generator of embedded problems shares: the problem, the split, the draw.

Problems are numbered without end. The first `EVALUATION` numbers are evaluation problems, the
rest training ones, and the two differ in kind as well as in number: some combinations (of
numbers, of a name with an object, of choices) are held out. A training problem contains no
held-out combination, an evaluation problem at least one, so no evaluation prompt can occur in
training, however long it goes on.
"""

import hashlib
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import count
from typing import Any

EVALUATION = 10_000
"""Indices below this are evaluation problems."""
HELD_OUT_SHARE = 8
"""One combination in this many is held out of training."""


@dataclass(frozen=True)
class Problem:
    """A generated row in its task's own fields, and an answer worked out in full."""

    row: Mapping[str, Any]
    solution: str
    """What a model is taught to write."""
    combinations: tuple[tuple[object, ...], ...]
    """What makes this problem new; each is held out of training or free for it."""


Generator = Callable[[random.Random], Problem]


def held_out(combination: tuple[object, ...]) -> bool:
    """Whether a combination is kept for evaluation. The same on every machine and run."""
    digest = hashlib.blake2b(repr(combination).encode(), digest_size=8).digest()
    return int.from_bytes(digest) % HELD_OUT_SHARE == 0


def draw(name: str, generate: Generator, index: int) -> Problem:
    """The problem with this number: deterministic in (name, index)."""
    evaluation = index < EVALUATION
    for attempt in count():
        problem = generate(random.Random(f"{name}/{index}/{attempt}"))
        if any(map(held_out, problem.combinations)) == evaluation:
            return problem
    raise AssertionError("unreachable")
