"""Graders by name: how an answer is compared, by c4's own ways or by a user's function."""

from dataclasses import dataclass

import numpy as np

from c4.errors import RAISED, C4Error, ConfigError, failure
from c4.plugins import Registry, plain_label
from c4.tasks.reading.extractors import find_style
from c4.tasks.task import Example, Grader, Judge

REGISTRY = Registry("grader", "--grader", {str(kind): kind for kind in Grader}, "my_graders:near")
"""Every grader that a user can name."""


def find_grader(name: str) -> str:
    """What grades go by under the grader that a user names; one of the user's own is loaded."""
    label = REGISTRY.label(name)
    if label not in REGISTRY.own and not callable(REGISTRY.behind(label)):
        raise ConfigError(f"{name} is no grader: it must be a function (example, answer, text)")
    return label


def parse_grader(text: str) -> str:
    """A grader as a file names it; nothing is loaded."""
    return REGISTRY.parse(text)


def own_judge(grader: str) -> Judge | None:
    """The function behind a user's grader; None for c4's own."""
    if grader in REGISTRY.own:
        return None
    return guard_judge(f"the grader {plain_label(grader)}", REGISTRY.behind(grader))


def guard_judge(name: str, judge: Judge) -> Judge:
    """A function of a user's own that grades, whose mistakes become errors in words."""

    def asked(example: Example, answer: str, text: str) -> bool:
        try:
            found = judge(example, answer, text)
        except (C4Error, MemoryError):
            raise
        except RAISED as error:
            raise ConfigError(f"{name} fails: {failure(error)}") from error
        if not isinstance(found, bool | int | np.bool_):  # None would be wrong, and any text right
            raise ConfigError(f"{name} returns {found!r}; return True or False")
        return bool(found)

    return asked


@dataclass(frozen=True)
class ReadingNames:
    """The extractor and the grader as a user names them, if the user does.

    A reading holds what they go by. A process that has not been told these names, such as a worker,
    loads the user's own objects by them.
    """

    style: str | None = None
    grader: str | None = None

    def load(self) -> None:
        """Let this process know the user's own objects."""
        if self.style is not None:
            find_style(self.style)
        if self.grader is not None:
            find_grader(self.grader)
