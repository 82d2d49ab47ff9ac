r"""Untrusted text made safe to print: names, file contents and model output.

Invisible characters are escaped, as in `\x1b`, so that a name can neither control a terminal nor
look like another name. Letters, accents, emoji and symbols of every script are kept.
"""

import json
import math
import unicodedata
from collections.abc import Mapping, Sequence
from typing import Any

SHAPELESS = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
"""Unicode categories: controls, formats such as bidirectional overrides and zero-width spaces,
lone surrogates, and line and paragraph separators."""
JOINERS = "\u200c\u200d"
"""Invisible, but needed to write Persian, Indian languages and emoji sequences."""


def visible(text: str) -> str:
    """Escape the invisible characters of a text, except line breaks."""
    lines = text.split("\n")
    return "\n".join(line if line.isprintable() else _spelled(line) for line in lines)


def visible_line(text: str) -> str:
    """Escape the invisible characters of a text, including line breaks."""
    return visible(text).replace("\n", r"\n")


def visible_json(value: Any) -> str:
    """Format a value as JSON on one line, in printable ASCII only. Paths become text.

    Infinity, which JSON lacks, becomes the text that `--set` accepts, and NaN becomes null.
    """
    text = json.dumps(_finite(value), default=str, allow_nan=False)
    return text.replace("\x7f", r"\u007f")  # the only control character that JSON does not escape


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
    """Format a number with its noun, in the plural unless the number is 1."""
    plural = f"{noun[:-1]}ies" if noun.endswith("y") else f"{noun}s"
    return f"{number} {noun if number == 1 else plural}"


def spell_ranges(numbers: Sequence[int]) -> str:
    """Format numbers as ranges: 0 to 3, 40 to 59."""
    ranges: list[list[int]] = []
    for number in sorted(numbers):
        if ranges and number == ranges[-1][1] + 1:
            ranges[-1][1] = number
        else:
            ranges.append([number, number])
    return ", ".join(f"{a} to {b}" if a < b else str(a) for a, b in ranges)


LONGEST_SHOWN = 80
"""Maximum number of characters of a value in a difference."""


def differences(there: Any, here: Any, name: str = "") -> list[str]:
    """List the differences of two values, one line per key: `a.b: 1 there, 2 here`."""
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
    """Return an excerpt of a long text around a place; a short text is unchanged."""
    if len(text) <= LONGEST_SHOWN:
        return text
    start = max(0, min(place - LONGEST_SHOWN // 3, len(text) - LONGEST_SHOWN))
    end = start + LONGEST_SHOWN
    return f"{'…' if start else ''}{text[start:end]}{'…' if end < len(text) else ''}"
