"""Labels: how the results of a method are named, and which of them may be compared."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from c4.errors import ConfigError
from c4.tasks import AnswerReading

BASELINE = "baseline"
"""The full decode that every other method is compared with."""
READING_OPTIONS = ("reading", "ending")
"""Changes that say how a gate reads answers; each is an option of that name, and no `--set`."""
CHANGE = re.compile(r"(?:(?P<part>[^,=]+)\.)?(?P<name>\w+)=(?P<value>.*)", re.DOTALL)
BEFORE_CHANGE = re.compile(r",(?=(?:[^,=]+\.)?\w+=)")
"""The comma in front of a change; one inside a value is followed by no name."""
BETWEEN_LABELS = re.compile(r",(?!(?:[^,=]+\.)?\w+=)")
"""The comma between two labels: one that no change follows."""


@dataclass(frozen=True)
class Change:
    """A parameter that is not the method's own: `H=2`, or `cvee.tau=0.8` to name its part."""

    part: str | None
    """The rule or the gate that has it; None where that is left open."""
    name: str
    value: str | None
    """None for a word that is no parameter, as in a label of the user's own."""

    @classmethod
    def parse(cls, text: str) -> "Change":
        match = CHANGE.fullmatch(text)
        return cls(**match.groupdict()) if match else cls(None, text, None)

    @property
    def of_reading(self) -> bool:
        """Whether it says how a gate reads answers."""
        return self.part is None and self.name in READING_OPTIONS

    def __str__(self) -> str:
        owner = "" if self.part is None else f"{self.part}."
        return self.name if self.value is None else f"{owner}{self.name}={self.value}"


def parse_settings(texts: Sequence[str]) -> list[Change]:
    """Parameters as `--set` gives them: `NAME=VALUE`, or `PART.NAME=VALUE` to say whose it is.

    What a value may be, and which parts there are, is for those to say who take the parameters.
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
    """What the results of a method go by: its name, and what was changed: `c4,H=2`."""

    method: str
    changes: tuple[Change, ...] = ()

    @classmethod
    def parse(cls, text: str) -> "Label":
        """The parts of a label; `str` puts them together again."""
        first, *others = BEFORE_CHANGE.split(text)
        method, *words = first.split(",")
        return cls(method, tuple(map(Change.parse, [*words, *others])))

    @property
    def is_plain(self) -> bool:
        """Whether it is a method as it is, and no variant such as `c4,H=2`."""
        return not self.changes

    @property
    def kind(self) -> str:
        """The method or gate, without the file that a frozen setting of it comes from."""
        return self.method.partition(" (")[0]

    def __str__(self) -> str:
        return ",".join([self.method, *map(str, self.changes)])


def frozen_label(gate: str, file: str) -> str:
    """What a gate goes by whose setting comes from a file."""
    return f"{gate} ({file})"


def split_labels(text: str) -> list[str]:
    """Labels that stand in one text with commas between them: `prophet,cvee,tau=0.8` are two."""
    return BETWEEN_LABELS.split(text) if text else []


def method_name(label: str) -> str:
    """The method that a label is of: `c4,H=2` is of `c4`."""
    return Label.parse(label).method


def reading_changes(reading: AnswerReading, usual: AnswerReading) -> tuple[Change, ...]:
    """What a label adds where a gate's reading is not the usual one; named as the options are."""
    pairs = {
        "reading": (reading.style_name, reading.style == usual.style),
        "ending": (str(reading.ending), reading.ending == usual.ending),
    }
    return tuple(Change(None, name, own) for name, (own, same) in pairs.items() if not same)


def label_under(identity: Mapping[str, Any], reading: AnswerReading) -> str:
    """A method's label among results of one reading.

    It says how the gate reads only where that is another reading. A label that a user chose
    stays as it is.
    """
    label = Label.parse(str(identity["label"]))
    own = (identity["gate"] or {}).get("reading")
    if own is None or label.method != identity["method"]:
        return str(label)
    others = tuple(change for change in label.changes if not change.of_reading)
    added = reading_changes(AnswerReading.parse(**own), reading)
    return str(replace(label, changes=others + added))
