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
    """The label of the grader that a user names; a user's own is loaded and checked."""
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
    """A user's judge; what it raises, and anything but True or False, becomes a clear error."""

    def guarded(example: Example, answer: str, text: str) -> bool:
        with naming_failures(f"{name} fails"):
            found = judge(example, answer, text)
        if not isinstance(found, bool | int | np.bool_):  # None would be wrong, and any text right
            raise ConfigError(f"{name} returns {found!r}; return True or False")
        return bool(found)

    return guarded


@dataclass(frozen=True)
class ReadingNames:
    """The names under which a user asked for an extractor and a grader.

    A reading holds only their labels, so a worker loads the user's own objects by these names.
    """

    style: str | None = None
    grader: str | None = None

    def load(self) -> None:
        """Load the user's own objects into this process."""
        if self.style is not None:
            find_style(self.style)
        if self.grader is not None:
            find_grader(self.grader)
