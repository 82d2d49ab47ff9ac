"""Registries: objects of one kind by name, both c4's own and users'."""

import logging
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from c4.errors import ConfigError, shortened
from c4.plugins._load import (
    Plugin,
    canonical_name,
    load_named,
    load_offered,
    package_of,
    unknown_object,
)

log = logging.getLogger(__name__)

OWN_LABEL = re.compile(r"[^,=@]*[\w-]@[0-9a-f]{12}")
"""Label of a user's own object: its name and the first digits of its source's hash."""

TAKE_SETTINGS = ("--gate", "--method")
"""Options whose objects have parameters that `--set` can change."""


@dataclass(frozen=True)
class Registry:
    """Objects of one kind by name, both c4's own and users'."""

    noun: str
    """Name of the kind in messages; the entry-point group is its plural."""
    option: str
    """Command-line option that takes such a name."""
    own: Mapping[str, Any]
    """Objects that come with c4."""
    example: str
    """Example of a user's name, for messages."""
    loaded: dict[str, Any] = field(default_factory=dict, repr=False, compare=False)
    """Users' own objects that were loaded in this process, by label."""

    @property
    def names(self) -> list[str]:
        """All names without a module: c4's own, then those of installed packages."""
        return [*self.own, *sorted(self.offered())]

    def offered(self) -> Mapping[str, EntryPoint]:
        """Return entry points of installed packages, except those with c4's own names."""
        return offered(self.noun, self.option, frozenset(self.own))

    def find(self, name: str) -> Plugin:
        """Find the object that a user named; unless it is c4's own, this runs code."""
        points = self.offered()
        if name in self.own:
            return Plugin(name, self.own[name])
        if name in points:
            return load_offered(self.noun, points[name])
        if ":" not in name:
            also = "one of your own: module:object or path/to/file.py:object"
            raise unknown_object(self.noun, name, self.names, also=also)
        known, _, settings = name.partition(":")
        if known in self.names and "=" in settings and self.option in TAKE_SETTINGS:
            given = " ".join(f"--set {known}.{setting}" for setting in settings.split(","))
            raise ConfigError(
                f"no {self.noun} named {shortened(name)!r}; give settings with {shortened(given)}"
            )
        return load_named(self.noun, name, self.example)

    def knows(self, name: str) -> bool:
        """Whether a text may name such an object: a known name, or one with a colon."""
        return name in self.own or ":" in name or name in self.offered()

    def canonical(self, name: str) -> str:
        """Return the name in results for an object that a user named."""
        return name if name in self.own else canonical_name(name)

    def by_canonical_name(self, names: Iterable[str]) -> dict[str, str]:
        """Map canonical names, which must be unique, to the names that a user typed."""
        typed: dict[str, str] = {}
        for name in names:
            short = self.canonical(name)
            if typed.setdefault(short, name) != name:
                raise ConfigError(
                    f"{self.option} {name}: results of it and of {typed[short]} would both go by "
                    f"{short}; rename one of the files"
                )
        return typed

    def label(self, name: str) -> str:
        """Load an object that a user named and return its label in results."""
        plugin = self.find(name)
        if plugin.source_sha256 is None:
            return plugin.name
        label = f"{plugin.name}@{plugin.source_sha256[:12]}"
        self.loaded[label] = plugin.found
        return label

    def parse(self, text: str) -> str:
        """Check a label read from a file; loads nothing."""
        if not self.allows(text):
            raise ValueError(f"{text!r} is no {self.noun}")
        return text

    def allows(self, text: str) -> bool:
        """Whether a text is a valid label."""
        return text in self.own or OWN_LABEL.fullmatch(text) is not None

    def behind(self, label: str) -> Any:
        """Return the object of a label: c4's own, or one loaded in this process."""
        if label in self.own:
            return self.own[label]
        if label not in self.loaded:
            name = plain_label(label)
            raise ConfigError(
                f"this was made with an earlier version of the {self.noun} {name}, or you have not "
                f"named it; name it: {self.option} {name}"
            )
        return self.loaded[label]


def plain_label(label: str) -> str:
    """Return a label without its source hash, as a user would type it."""
    return label.partition("@")[0]


@cache
def offered(noun: str, option: str, own: frozenset[str]) -> Mapping[str, EntryPoint]:
    """Return the entry points of installed packages for a kind, without loading them.

    Entry points with one of c4's own names are left out; a warning says how to name them instead.

    Args:
        own: names of c4's own objects.
    """
    points = {point.name: point for point in entry_points(group=f"c4.{noun}s")}
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
