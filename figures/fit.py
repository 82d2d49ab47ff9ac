"""Fit text into the space it has: names that users choose may be of any length."""

from functools import cache
from math import ceil
from typing import Literal

import matplotlib as mpl
from matplotlib.font_manager import FontProperties, findfont, get_font
from matplotlib.textpath import TextToPath

MONOSPACED, PROPORTIONAL = "DejaVu Sans Mono", "DejaVu Sans"
"""The fonts, which come with matplotlib."""
POINTS = 72
"""In an inch."""


def shorten(text: str, most: int) -> str:
    """A text on one line, cut to what fits beside an axis."""
    line = " ".join(text.split())
    return line if len(line) <= most else line[: most - 1] + "…"


def drawable(text: str, font: str = MONOSPACED) -> str:
    """A text with an empty box for every character that a font lacks; line breaks stay."""
    letters = _letters(font)
    return "".join(letter if ord(letter) in letters else "□" for letter in text)


@cache
def _letters(font: str) -> frozenset[int]:
    return frozenset({ord("\n"), *get_font(findfont(font)).get_charmap()})


def text_width(line: str, size: float, weight: str = "normal") -> float:
    """Width of a line in inches, in the font of figures."""
    return _width(drawable(line, PROPORTIONAL), size, weight, tuple(mpl.rcParams["font.family"]))


@cache
def _width(line: str, size: float, weight: str, family: tuple[str, ...]) -> float:
    font = FontProperties(family=list(family), size=size, weight=weight)
    width, _, _ = TextToPath().get_text_width_height_descent(line, font, ismath=False)
    return float(width) / POINTS


def points(setting: Literal["axes.titlesize", "legend.fontsize"]) -> float:
    """Font size of a setting, in points; a user's style may change it."""
    return float(FontProperties(size=mpl.rcParams[setting]).get_size_in_points())


def fitted(text: str, inches: float, size: float, weight: str = "normal") -> str:
    """A text on one line; its middle is left out if there is no room.

    Names that differ do so at either end: in the file and the class, or in a setting.
    """
    line = " ".join(text.split())
    width = text_width(line, size, weight)
    kept = len(line) if width <= inches else max(2, int(len(line) * inches / width))
    short = line
    while kept > 1 and text_width(short, size, weight) > inches:
        short = f"{line[: ceil(kept / 2)]}…{line[len(line) - kept // 2 :]}"
        kept -= 1
    return short


def wrapped(text: str, inches: float, size: float, weight: str = "normal") -> list[str]:
    """A text on as many lines as it needs; its own line breaks stay."""
    lines: list[str] = []
    for paragraph in text.splitlines():
        lines.append("")
        for word in paragraph.split():
            longer = f"{lines[-1]} {word}".strip()
            if lines[-1] and text_width(longer, size, weight) > inches:
                lines.append("")
                longer = word
            lines[-1] = fitted(longer, inches, size, weight)
    return lines
