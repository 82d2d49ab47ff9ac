"""The course of one decode, as far as another project's file tells it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from c4.errors import DataError, shortened

MOST = 2**31 - 1
"""The largest number of a question, and the largest budget."""


def read_verdict(given: Any) -> bool | None:
    """Whether a decode was right, as a file says it: true, false, 1, 0, or None for nothing."""
    if isinstance(given, np.ndarray | np.generic) and given.size == 1:
        given = given.item()
    if given is None or isinstance(given, bool):
        return given
    if isinstance(given, int | float) and given in (0, 1):
        return bool(given)
    raise ValueError(f"neither right nor wrong, but {shortened(repr(given))}")


@dataclass(frozen=True, kw_only=True)
class Course:
    """One decode: at which steps its final answer was there, and when tokens were committed."""

    number: int
    """The question's number."""
    sample: str = ""
    """What tells it from other decodes of the question; empty for the first."""
    is_final: Sequence[bool]
    """At each step, whether the answer read there is the final one."""
    budget: int
    """Steps of the full decode."""
    commit_step: list[int]
    """Per position, the step at which it was committed, from 1; 0 if it was given."""
    answer: str | None
    target: str | None = None
    correct: bool | None = None

    def __post_init__(self) -> None:
        if not 0 < self.steps <= self.budget:
            raise DataError(f"{self.steps} steps of a budget of {self.budget}")
        if max(self.number, self.budget) > MOST:
            raise DataError("its question or its budget has an impossible number")

    @property
    def steps(self) -> int:
        """Forward passes that were spent."""
        return len(self.is_final)

    @property
    def settled(self) -> int | None:
        """The first step from which the final answer stays; None if the last step lacks it."""
        last_other = max((i for i, same in enumerate(self.is_final, 1) if not same), default=0)
        return None if last_other == self.steps else last_other + 1

    @property
    def shown(self) -> int | None:
        """The first step at which the final answer is read; None if it never settles."""
        if self.settled is None:
            return None
        return 1 + list(self.is_final).index(True)
