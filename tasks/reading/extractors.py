"""Extractors by name: the task's own two, those of other kinds of answers, and users' own.

A task has two extractors, `careful` and `plain`. Any other can take their place, so one recording
can be evaluated under many.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import wraps
from typing import Any

from c4.errors import ConfigError, naming_failures
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
"""Every extractor that a user can name."""
WHOLE_TEXT = "letter"
"""Kind of answer whose careful extractor needs the whole text: a part is never conclusive."""


@dataclass(frozen=True, kw_only=True)
class Finder:
    """A user's extractor, optionally with a normal form and a place where gates look."""

    find: Extractor
    normal: Normal | None = None
    """Converts the gold answer to the extractor's normal form; by default, as the task does."""
    search: SearchMode | None = None
    """Where gates look for the answer; by default, as in the task."""

    def __post_init__(self) -> None:
        if self.search is not None:
            object.__setattr__(self, "search", SearchMode(self.search))  # the field is frozen


def find_style(name: str) -> str:
    """Return the label of the extractor that a user names; load and check a user-defined one."""
    label = REGISTRY.label(name)
    if label not in REGISTRY.own:
        as_finder(name, REGISTRY.behind(label))
    return label


def as_finder(name: str, found: Any) -> Finder:
    """A user's extractor as a Finder, whether it is a function or a Finder already."""
    if isinstance(found, Finder):
        return found
    if not callable(found):
        raise ConfigError(
            f"{name} is no extractor: it must be a function (text, choices) that returns a "
            "Candidate or None, or a c4.tasks.Finder"
        )
    return Finder(find=found)


def read_under(task: Task, style: str) -> Task:
    """The task with the `extract`, `normal` and `search` of a reading style."""
    if style == ReadingStyle.CAREFUL:
        return task
    if style == ReadingStyle.PLAIN:
        return replace(task, extract=task.plain, normal=task.plain_normal)
    if style in EXTRACTORS:
        kind = EXTRACTORS[style]
        if (kind["family"] is Family.CODE) is not (task.family is Family.CODE):
            raise ConfigError(
                f"--reading {style}: answers of {task.name} are "
                f"{'programs' if task.family is Family.CODE else 'no programs'}; leave it out"
            )
        normal = kind.get("normal", str)
        return replace(task, extract=kind["extract"], normal=normal, search=kind["search"])
    finder = as_finder(style, REGISTRY.behind(style))
    return replace(
        task,
        extract=guard_extractor(plain_label(style), finder.find),
        normal=finder.normal or task.normal,
        search=finder.search or task.search,
    )


def reads_parts(task: Task, style: str) -> bool:
    """Whether a part of a text can settle the answer; careful letters need the whole text."""
    if style == ReadingStyle.CAREFUL:
        return task.family is not Family.LETTERS
    return style != WHOLE_TEXT


def guard_extractor(name: str, extract: Extractor) -> Extractor:
    """Wrap a user's extractor: exceptions and invalid results become clear errors.

    Args:
        name: name of the extractor or of its task, for messages.
    """

    @wraps(extract)
    def guarded(text: str, choices: Sequence[str] = ()) -> Candidate | None:
        with naming_failures(f"the extractor of {name} fails"):
            found = extract(text, choices)
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
