"""Graders by name: c4's own ways to compare answers, and users' functions."""

from dataclasses import dataclass

import numpy as np

from c4.errors import ConfigError, naming_failures
from c4.plugins import Registry, plain_label
from c4.tasks.reading.extractors import find_style
from c4.tasks.task import Example, Grader, Judge

REGISTRY = Registry("grader", "--grader", {str(kind): kind for kind in Grader}, "my_graders:near")
"""Every grader that a user can name."""


def find_grader(name: str) -> str:
    """Return the label of the grader that a user names; load and check a user-defined one."""
    label = REGISTRY.label(name)
    if label not in REGISTRY.own and not callable(REGISTRY.behind(label)):
        raise ConfigError(f"{name} is no grader: it must be a function (example, answer, text)")
    return label


def own_judge(grader: str) -> Judge | None:
    """The function behind a user's grader; None for c4's own."""
    if grader in REGISTRY.own:
        return None
    return guard_judge(f"the grader {plain_label(grader)}", REGISTRY.behind(grader))


def guard_judge(name: str, judge: Judge) -> Judge:
    """Wrap a user's judge: exceptions and results other than True or False become clear errors."""

    def guarded(example: Example, answer: str, text: str) -> bool:
        with naming_failures(f"{name} fails"):
            found = judge(example, answer, text)
        if not isinstance(found, bool | int | np.bool_):  # bool() would take None and any text
            raise ConfigError(f"{name} returns {found!r}; return True or False")
        return bool(found)

    return guarded


@dataclass(frozen=True)
class ReadingNames:
    """Names by which a user chose an extractor and a grader.

    A reading holds only their labels; a worker needs these names to load the user's own objects.
    """

    style: str | None = None
    grader: str | None = None

    def load(self) -> None:
        """Load the user's own objects into this process."""
        if self.style is not None:
            find_style(self.style)
        if self.grader is not None:
            find_grader(self.grader)
