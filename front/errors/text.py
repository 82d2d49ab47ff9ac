r"""Text from elsewhere, made safe to show: names, files, and what models write.

Whatever has no shape of its own is spelled out, as in `\x1b`, so that a name can neither steer a
terminal nor look like another name. Letters, accents, emoji and signs of every script stay.
"""

import json
import math
import unicodedata
from collections.abc import Mapping, Sequence
from typing import Any

SHAPELESS = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
"""Categories of Unicode: controls, formats such as bidirectional overrides and zero-width spaces,
surrogates without a partner, and separators of lines and paragraphs."""
JOINERS = "\u200c\u200d"
"""Shapeless, but part of how Persian, Indian languages and families of emoji are written."""


def visible(text: str) -> str:
    """A text without anything shapeless; its line breaks stay."""
    lines = text.split("\n")
    return "\n".join(line if line.isprintable() else _spelled(line) for line in lines)


def visible_line(text: str) -> str:
    """A text without anything shapeless, on one line."""
    return visible(text).replace("\n", r"\n")


def visible_json(value: Any) -> str:
    """A value as JSON on one line, in printable ASCII alone. Paths become text.

    JSON has no infinity, which becomes the text that `--set` takes, and no NaN, which becomes null.
    """
    text = json.dumps(_finite(value), default=str, allow_nan=False)
    return text.replace("\x7f", r"\u007f")  # the one control character that JSON leaves as it is


def _finite(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else str(value)
    return value


def _spelled(line: str) -> str:
    shown = []
    for i, letter in enumerate(line):
        shapeless = unicodedata.category(letter) in SHAPELESS and not _joins(line, i)
        shown.append(letter.encode("unicode_escape").decode() if shapeless else letter)
    return "".join(shown)


def _joins(line: str, i: int) -> bool:
    """Whether a character is a joiner between two characters of a script that uses joiners."""
    before, after = line[max(0, i - 1) : i], line[i + 1 : i + 2]
    return line[i] in JOINERS and _can_be_joined(before) and _can_be_joined(after)


def _can_be_joined(sign: str) -> bool:
    return sign != "" and not sign.isascii() and unicodedata.category(sign)[0] in "LMS"


def counted(number: int, noun: str) -> str:
    """A number with its noun, in the plural unless the number is 1."""
    plural = f"{noun[:-1]}ies" if noun.endswith("y") else f"{noun}s"
    return f"{number} {noun if number == 1 else plural}"


def spell_ranges(numbers: Sequence[int]) -> str:
    """Numbers written as ranges: 0 to 3, 40 to 59."""
    ranges: list[list[int]] = []
    for number in sorted(numbers):
        if ranges and number == ranges[-1][1] + 1:
            ranges[-1][1] = number
        else:
            ranges.append([number, number])
    return ", ".join(f"{a} to {b}" if a < b else str(a) for a, b in ranges)


LONGEST_SHOWN = 80
"""Characters of a value that a difference shows."""


def differences(there: Any, here: Any, name: str = "") -> list[str]:
    """The differences of two values, one line for each key: `a.b: 1 there, 2 here`."""
    if there == here:
        return []
    if isinstance(there, Mapping) and isinstance(here, Mapping):
        keys = [*there, *(key for key in here if key not in there)]
        inside = f"{name}." if name else ""
        return [
            line
            for key in keys
            for line in differences(there.get(key), here.get(key), f"{inside}{key}")
        ]
    was, now = repr(there), repr(here)
    same = zip(was, now, strict=False)
    first = next((i for i, (a, b) in enumerate(same) if a != b), min(len(was), len(now)))
    where = f"{name}: " if name else ""
    return [f"{where}{_around(was, first)} there, {_around(now, first)} here"]


def _around(text: str, place: int) -> str:
    """What stands at a place in a text, cut where the text is long."""
    if len(text) <= LONGEST_SHOWN:
        return text
    start = max(0, min(place - LONGEST_SHOWN // 3, len(text) - LONGEST_SHOWN))
    end = start + LONGEST_SHOWN
    return f"{'…' if start else ''}{text[start:end]}{'…' if end < len(text) else ''}"
