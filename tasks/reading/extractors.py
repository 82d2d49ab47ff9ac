"""Extractors by name: how answers are found, by the task's own way, another kind's, or a user's.

A task has two extractors, `careful` and `plain`. Any other reads the same texts in its place, so a
recording can be asked under all of them.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import wraps
from typing import Any

from c4.errors import RAISED, C4Error, ConfigError, failure
from c4.plugins import Registry, plain_label
from c4.tasks.reading.answers import EXTRACTORS
from c4.tasks.task import (
    Candidate,
    Extractor,
    Family,
    Normal,
    ReadingStyle,
    SearchMode,
    Task,
)

REGISTRY = Registry(
    "extractor",
    "--reading",
    {**{str(style): style for style in ReadingStyle}, **EXTRACTORS},
    "my_extractors:total",
)
"""Every way of finding answers that a user can name."""
WHOLE_TEXT = "letter"
"""The kind of answer that is read off all of a text: a part of it is never conclusive."""


@dataclass(frozen=True, kw_only=True)
class Finder:
    """An extractor of a user's own that changes more than how the answer is found."""

    find: Extractor
    normal: Normal | None = None
    """Brings the gold answer into the extractor's normal form; by default as the task does."""
    search: SearchMode | None = None
    """Where gates look for the answer; by default where they look in the task."""

    def __post_init__(self) -> None:
        if self.search is not None:
            object.__setattr__(self, "search", SearchMode(self.search))  # the field is frozen


def find_style(name: str) -> str:
    """What readings go by under the extractor that a user names; a user's own is loaded."""
    label = REGISTRY.label(name)
    if label not in REGISTRY.own:
        as_finder(name, REGISTRY.behind(label))
    return label


def as_finder(name: str, found: Any) -> Finder:
    """An extractor of a user's own, be it a function or more."""
    if isinstance(found, Finder):
        return found
    if not callable(found):
        raise ConfigError(
            f"{name} is no extractor: it must be a function (text, choices) that returns a "
            "Candidate or None, or a c4.tasks.Finder"
        )
    return Finder(find=found)


def parse_style(text: str) -> str:
    """A reading style as a file names it; nothing is loaded."""
    return REGISTRY.parse(text)


def read_under(task: Task, style: str) -> Task:
    """The task as a reading style sees it: `extract`, `normal` and `search` are that style's."""
    if style == ReadingStyle.CAREFUL:
        return task
    if style == ReadingStyle.PLAIN:
        return replace(task, extract=task.plain, normal=task.plain_normal)
    if style in EXTRACTORS:
        kind = EXTRACTORS[style]
        if (kind.family is Family.CODE) is not (task.family is Family.CODE):
            raise ConfigError(
                f"--reading {style}: answers of {task.name} are "
                f"{'programs' if task.family is Family.CODE else 'no programs'}; leave it out"
            )
        return replace(task, extract=kind.extract, normal=kind.normal, search=kind.search)
    finder = as_finder(style, REGISTRY.behind(style))
    changes: dict[str, Any] = {"normal": finder.normal, "search": finder.search}
    changes = {name: value for name, value in changes.items() if value is not None}
    return replace(task, extract=guard_extractor(plain_label(style), finder.find), **changes)


def reads_parts(task: Task, style: str) -> bool:
    """Whether a part of a text can be conclusive; the careful letter needs all of it."""
    if style == ReadingStyle.CAREFUL:
        return task.family is not Family.LETTERS
    return style != WHOLE_TEXT


def guard_extractor(name: str, extract: Extractor) -> Extractor:
    """An extractor of a user's own, whose mistakes become errors in words.

    Args:
        name: the extractor, or the task that has it.
    """

    @wraps(extract)
    def guarded(text: str, choices: Sequence[str] = ()) -> Candidate | None:
        try:
            found = extract(text, choices)
        except (C4Error, MemoryError):
            raise
        except RAISED as error:
            raise ConfigError(f"the extractor of {name} fails: {failure(error)}") from error
        if found is None:
            return None
        if not isinstance(found, Candidate):
            raise ConfigError(f"the extractor of {name} returns {found!r} and no Candidate")
        if not isinstance(found.value, str) or not 0 <= found.start <= found.end <= len(text):
            raise ConfigError(
                f"the extractor of {name} finds {found!r}, which is no text at a place within "
                f"{len(text)} characters"
            )
        return found

    return guarded
