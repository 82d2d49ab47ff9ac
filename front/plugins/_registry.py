"""Names and what they stand for: c4's own objects, and those of users."""

import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from c4.errors import ConfigError
from c4.plugins._load import (
    Fits,
    Plugin,
    canonical_name,
    load_named,
    load_offered,
    package_of,
)
from c4.plugins._parsed import unknown_object

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Registry:
    """Objects of one kind by name: c4's own, and through the same door those of users."""

    noun: str
    """What one of them is called in messages; its plural is the entry-point group."""
    option: str
    """The option that takes such a name."""
    own: Mapping[str, Any]
    """Those that come with c4."""
    example: str
    """A name that a user might give, for messages."""
    fits: Fits = callable
    """Whether an object looks like one of the kind; those are offered where a name is mistyped."""

    @property
    def names(self) -> list[str]:
        """Every name that needs no module: c4's own, then those of installed packages."""
        return [*self.own, *sorted(self.offered())]

    def offered(self) -> Mapping[str, EntryPoint]:
        """What installed packages offer, c4's own names aside."""
        return offered(self.noun, self.option, frozenset(self.own))

    def find(self, name: str) -> Plugin:
        """The object of a name that a user typed; unless it is c4's own, code is run."""
        points = self.offered()
        if name in self.own:
            return Plugin(name, self.own[name])
        if name in points:
            return load_offered(self.noun, points[name])
        if ":" not in name:
            also = "one of your own: module:object or path/to/file.py:object"
            raise unknown_object(self.noun, name, self.names, also=also)
        return load_named(self.noun, name, self.example, self.fits)

    def knows(self, name: str) -> bool:
        """Whether a text could name such an object: a known name, or one with a colon."""
        return name in self.own or ":" in name or name in self.offered()

    def is_own(self, name: str) -> bool:
        """Whether a name is of c4's own, so that finding it runs nobody's code."""
        return name in self.own

    def canonical(self, name: str) -> str:
        """What the results of an object go by that a user names so."""
        return name if name in self.own else canonical_name(name)

    def by_canonical_name(self, names: Iterable[str]) -> dict[str, str]:
        """The names that a user typed, by what their results go by; each must have its own."""
        typed: dict[str, str] = {}
        for name in names:
            short = self.canonical(name)
            if typed.setdefault(short, name) != name:
                raise ConfigError(
                    f"{self.option} {name}: results of it and of {typed[short]} would both go by "
                    f"{short}; rename one of the files"
                )
        return typed


@cache
def offered(noun: str, option: str, own: frozenset[str]) -> Mapping[str, EntryPoint]:
    """What installed packages offer, not loaded yet. A name of c4's own stays c4's, and is said.

    Args:
        own: the names of c4's own.
    """
    points = {point.name: point for point in entry_points(group=group_of(noun))}
    for name in sorted(points.keys() & own):
        point = points.pop(name)
        log.warning(
            "%s offers a %s named %s, which is c4's own; ask for its %s as %s %s",
            package_of(point),
            noun,
            name,
            noun,
            option,
            point.value,
        )
    return points


def group_of(noun: str) -> str:
    """Entry-point group under which installed packages offer objects of a kind."""
    return f"c4.{noun}s"
