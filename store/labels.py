"""Labels: names for the results of a method and its variants."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from c4.errors import ConfigError
from c4.tasks import AnswerReading

BASELINE = "baseline"
"""The full decode that every other method is compared with."""
READING_OPTIONS = ("reading", "ending")
"""Changes that define how a gate reads answers; set by options of these names, not by `--set`."""
CHANGE = re.compile(r"(?:(?P<part>[^,=]+)\.)?(?P<name>\w+)=(?P<value>.*)", re.DOTALL)
BEFORE_CHANGE = re.compile(r",(?=(?:[^,=]+\.)?\w+=)")
"""The comma before a change; a comma inside a value is not followed by `NAME=`."""
BETWEEN_LABELS = re.compile(r",(?!(?:[^,=]+\.)?\w+=)")
"""The comma between two labels; it is not followed by a change."""


@dataclass(frozen=True)
class Change:
    """A changed parameter of a method: `H=2`, or `cvee.tau=0.8` with the name of its part."""

    part: str | None
    """The rule or gate that has the parameter; None if not given."""
    name: str
    value: str | None
    """The new value; None for a word that is not a parameter, as in a user's own label."""

    @classmethod
    def parse(cls, text: str) -> "Change":
        match = CHANGE.fullmatch(text)
        return cls(**match.groupdict()) if match else cls(None, text, None)

    @property
    def of_reading(self) -> bool:
        """Whether the change defines how a gate reads answers."""
        return self.part is None and self.name in READING_OPTIONS

    def __str__(self) -> str:
        owner = "" if self.part is None else f"{self.part}."
        return self.name if self.value is None else f"{owner}{self.name}={self.value}"


def parse_settings(texts: Sequence[str]) -> list[Change]:
    """Parse the arguments of `--set`: `NAME=VALUE`, or `PART.NAME=VALUE` to name the part.

    Values and parts are validated later, by the code that takes the parameters.
    """
    settings: dict[tuple[str | None, str], Change] = {}
    for text in texts:
        setting = Change.parse(text.strip())
        if not setting.value:
            raise ConfigError(
                f"--set {text}: write NAME=VALUE, or PART.NAME=VALUE as in --set cvee.tau=0.8"
            )
        first = settings.setdefault((setting.part, setting.name), setting)
        if first is not setting:
            raise ConfigError(f"--set {text}: it is given twice, first as {first}; give it once")
    return list(settings.values())


@dataclass(frozen=True)
class Label:
    """The name of a method's results: the method and its changed parameters, as in `c4,H=2`."""

    method: str
    changes: tuple[Change, ...] = ()

    @classmethod
    def parse(cls, text: str) -> "Label":
        """Parse a label; `str` is the inverse."""
        first, *others = BEFORE_CHANGE.split(text)
        method, *words = first.split(",")
        return cls(method, tuple(map(Change.parse, [*words, *others])))

    @property
    def is_plain(self) -> bool:
        """Whether the label is an unchanged method, not a variant such as `c4,H=2`."""
        return not self.changes

    @property
    def kind(self) -> str:
        """The method or gate, without the file of a frozen setting."""
        return self.method.partition(" (")[0]

    def __str__(self) -> str:
        return ",".join([self.method, *map(str, self.changes)])


def frozen_label(gate: str, file: str) -> str:
    """Return the label of a gate whose setting comes from a file."""
    return f"{gate} ({file})"


def split_labels(text: str) -> list[str]:
    """Split a comma-separated list of labels: `prophet,cvee,tau=0.8` are two."""
    return BETWEEN_LABELS.split(text) if text else []


def method_name(label: str) -> str:
    """Return the method of a label: `c4` for `c4,H=2`."""
    return Label.parse(label).method


def reading_changes(reading: AnswerReading, usual: AnswerReading) -> tuple[Change, ...]:
    """Return the changes that a label adds for a gate's reading that is not the usual one."""
    pairs = {
        "reading": (reading.style_name, reading.style == usual.style),
        "ending": (str(reading.ending), reading.ending == usual.ending),
    }
    return tuple(Change(None, name, own) for name, (own, same) in pairs.items() if not same)


def label_under(identity: Mapping[str, Any], reading: AnswerReading) -> str:
    """Return a method's label among results of one reading.

    It includes the gate's reading only if that differs. A label that the user chose is unchanged.
    """
    label = Label.parse(str(identity["label"]))
    own = (identity["gate"] or {}).get("reading")
    if own is None or label.method != identity["method"]:
        return str(label)
    others = tuple(change for change in label.changes if not change.of_reading)
    added = reading_changes(AnswerReading.parse(**own), reading)
    return str(replace(label, changes=others + added))
