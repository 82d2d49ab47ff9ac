"""Labels: how the results of a method are named, and which of them may be compared."""

import re
from collections.abc import Mapping
from typing import Any

from c4.tasks import AnswerReading

BASELINE = "baseline"
"""The full decode that every other method is compared with."""


def is_baseline(identity: Mapping[str, Any]) -> bool:
    """Whether an identity is the full decode's: the schedule, whole passes, no gate to end it."""
    whole = identity["forward"]["cache"] == "off"
    return identity["rule"] == {"name": "schedule"} and identity["gate"] is None and whole


READING_WORDS = re.compile(r",(?:reading|ending)=\w+")
"""What a label says about its gate's reading."""


def reading_words(reading: AnswerReading, usual: AnswerReading) -> list[str]:
    """What a label adds where a gate's reading is not the usual one; named as the options are."""
    pairs = {
        "reading": (reading.style, usual.style),
        "ending": (reading.ending, usual.ending),
    }
    return [f"{name}={own}" for name, (own, other) in pairs.items() if own is not other]


def label_under(identity: Mapping[str, Any], reading: AnswerReading) -> str:
    """A method's label among results of one reading.

    It says how the gate reads only where that is another reading. A label that a user chose
    stays as it is.
    """
    label = str(identity["label"])
    own = (identity["gate"] or {}).get("reading")
    if own is None or method_name(label) != identity["method"]:
        return label
    words = reading_words(AnswerReading.parse(**own), reading)
    return ",".join([READING_WORDS.sub("", label), *words])


OF_THE_METHOD = ("method", "label", "rule", "gate", "forward", "cells")
"""What may differ between two decodes that are compared example by example."""


def conditions(identity: Mapping[str, Any]) -> dict[str, Any]:
    """What a run shares with the runs it may be compared with."""
    return {k: v for k, v in identity.items() if k not in OF_THE_METHOD}


def method_name(label: str) -> str:
    """The method that a label is of: `c4,H=2` is of `c4`."""
    return label.partition(",")[0]


def is_plain(label: str) -> bool:
    """Whether a label is a method as it is, and no variant such as `c4,H=2`."""
    return "," not in label
