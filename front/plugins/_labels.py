"""Registries whose objects label results, such as the grader that gave a verdict."""

import re
from dataclasses import dataclass, field
from typing import Any

from c4.errors import ConfigError
from c4.plugins._registry import Registry

OWN_LABEL = re.compile(r"[^,=@]*[\w-]@[0-9a-f]{12}")
"""What results by a user's own object go by: its name, and the beginning of its source's hash."""


@dataclass(frozen=True)
class LabelRegistry(Registry):
    """A registry of objects that decide what a result is, so results keep their label.

    A file may hold a label. It is compared with what the user of this process has named, and
    nothing is loaded because of it.
    """

    loaded: dict[str, Any] = field(default_factory=dict, repr=False, compare=False)
    """Users' own objects that were named in this process, by label."""

    def label(self, name: str) -> str:
        """What results go by under an object that a user names; one of the user's own is loaded."""
        plugin = self.find(name)
        if plugin.source_sha256 is None:
            return plugin.name
        label = f"{plugin.name}@{plugin.source_sha256[:12]}"
        self.loaded[label] = plugin.found
        return label

    def parse(self, text: str) -> str:
        """A label as a file holds it; nothing is loaded."""
        if not self.allows(text):
            raise ValueError(f"{text!r} is no {self.noun}")
        return text

    def allows(self, text: str) -> bool:
        """Whether a text can be a label."""
        return text in self.own or OWN_LABEL.fullmatch(text) is not None

    def behind(self, label: str) -> Any:
        """The object behind a label: c4's own, or the user's, who must have named it."""
        if label in self.own:
            return self.own[label]
        if label not in self.loaded:
            name = plain_label(label)
            raise ConfigError(
                f"this was made with the {self.noun} {name} as its source was then; name it: "
                f"{self.option} {name}"
            )
        return self.loaded[label]


def plain_label(label: str) -> str:
    """A label without the hash of its source, as a user would type it."""
    return label.partition("@")[0]
