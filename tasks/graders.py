"""Graders by name: how an answer is compared, by c4's own ways or by a user's function."""

import re
from collections.abc import Callable

from c4.errors import C4Error, ConfigError, failure
from c4.plugins import Registry
from c4.tasks.task import Example, Grader, Judge

REGISTRY = Registry("grader", "--grader", {str(kind): kind for kind in Grader}, "my_graders:near")
"""Every grader that a user can name."""
OWN_GRADER = re.compile(r"[^,=@]+:?\w+@[0-9a-f]{12}")
"""What grades by a user's function go by: its name, and the beginning of its source's hash."""
_NAMED: dict[str, Judge] = {}
"""Functions that the user of this process has named, by what their grades go by."""


def find_grader(name: str) -> str:
    """What grades go by under the grader that a user names; one of the user's own is loaded."""
    plugin = REGISTRY.find(name)
    if plugin.source_sha256 is None:
        return Grader(plugin.found)
    if not callable(plugin.found):
        raise ConfigError(f"{name} is no grader: it must be a function (example, answer, text)")
    label = f"{plugin.name}@{plugin.source_sha256[:12]}"
    _NAMED[label] = plugin.found
    return label


def parse_grader(text: str) -> str:
    """A grader as a file names it; nothing is loaded."""
    if text in list(Grader):
        return Grader(text)
    if not OWN_GRADER.fullmatch(text):
        raise ValueError(f"{text!r} is no grader")
    return text


def own_judge(grader: str) -> Callable[[Example, str, str], bool] | None:
    """The function behind a user's grader; None for c4's own."""
    if grader in list(Grader):
        return None
    if grader not in _NAMED:
        name = grader.partition("@")[0]
        raise ConfigError(
            f"answers are graded by {name} as its source was then; name it: --grader {name}"
        )
    judge = _NAMED[grader]

    def asked(example: Example, answer: str, text: str) -> bool:
        try:
            found = judge(example, answer, text)
        except (C4Error, MemoryError):
            raise
        except Exception as error:
            name = grader.partition("@")[0]
            raise ConfigError(f"the grader {name} fails: {failure(error)}") from error
        if found is None:  # a forgotten return would make every answer wrong
            name = grader.partition("@")[0]
            raise ConfigError(f"the grader {name} returns None; return True or False")
        return bool(found)

    return asked
