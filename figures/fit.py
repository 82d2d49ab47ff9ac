"""Fit text into limited space, since names that users choose may have any length."""

from functools import cache
from math import ceil
from typing import Literal

import matplotlib as mpl
from matplotlib.font_manager import FontProperties, findfont, get_font
from matplotlib.textpath import TextToPath

MONOSPACED, PROPORTIONAL = "DejaVu Sans Mono", "DejaVu Sans"
"""Fonts that come with Matplotlib."""
POINTS = 72
"""Points per inch."""


def shorten(text: str, most: int) -> str:
    """Put a text on one line of at most `most` characters."""
    line = " ".join(text.split())
    return line if len(line) <= most else line[: most - 1] + "…"


def drawable(text: str, font: str = MONOSPACED) -> str:
    """Replace each character that a font lacks with an empty box; keep line breaks."""
    letters = _letters(font)
    return "".join(letter if ord(letter) in letters else "□" for letter in text)


@cache
def _letters(font: str) -> frozenset[int]:
    return frozenset({ord("\n"), *get_font(findfont(font)).get_charmap()})


def text_width(line: str, size: float, weight: str = "normal") -> float:
    """Width of a line in inches, in the font of the figures."""
    return _width(drawable(line, PROPORTIONAL), size, weight, tuple(mpl.rcParams["font.family"]))


@cache
def _width(line: str, size: float, weight: str, family: tuple[str, ...]) -> float:
    font = FontProperties(family=list(family), size=size, weight=weight)
    width, _, _ = TextToPath().get_text_width_height_descent(line, font, ismath=False)
    return float(width) / POINTS


def points(setting: Literal["axes.titlesize", "legend.fontsize"]) -> float:
    """Current font size of a setting, in points."""
    return float(FontProperties(size=mpl.rcParams[setting]).get_size_in_points())


def fitted(text: str, inches: float, size: float, weight: str = "normal") -> str:
    """Put a text on one line, and cut out its middle if it is too wide.

    Different names usually differ at their ends: in the file, the class or a setting.
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
    """Wrap a text into lines of limited width; keep its own line breaks."""
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
