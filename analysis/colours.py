"""Colours and markers of methods and families, for figures and the viewer.

The colours are from the palettes of Okabe and Ito and of Tol, which colour-blind readers can tell
apart; markers distinguish methods in greyscale.
"""

import zlib
from collections import Counter
from dataclasses import dataclass
from typing import Literal

from c4.store.labels import Label

FAMILY_COLOURS = {"letters": "#004488", "long_reasoning": "#BB5566", "code": "#B8860B"}


@dataclass(frozen=True)
class Mark:
    """Colour and marker of a method."""

    colour: str
    marker: str
    """Matplotlib's name of the marker."""
    fill: Literal["full", "none"] = "full"


MARKS = {
    "baseline": Mark("#7f7f7f", "s"),
    "cvee": Mark("#0072B2", "o"),
    "prophet": Mark("#D55E00", "^"),
    "sched": Mark("#E69F00", "v"),
    "c4": Mark("#000000", "*"),
    "confidence": Mark("#56B4E9", "<"),
    "stability": Mark("#009E73", ">"),
    "fixed-patience": Mark("#6A51A3", "d"),
    "progress": Mark("#999933", "s"),
    "oracle": Mark("#4d4d4d", "D"),
    "cctc-core": Mark("#44AA99", "P"),
    "cctc": Mark("#117733", "X"),
    "fast-dllm": Mark("#CC79A7", "D"),
    "klass": Mark("#882255", "p"),
    "slowfast": Mark("#AA4499", "h"),
    "wino": Mark("#A58B00", "8"),
    "wino+cvee": Mark("#661100", "H"),
}
COLOURS = ("#6699CC", "#997700", "#994455", "#332288", "#CC6677")
SPARE = [Mark(colour, marker) for marker in ("X", "d", "p", "h") for colour in COLOURS]
"""Marks for gates and labels that users define."""
TAKEN: dict[str, Mark] = {}
"""Marks that this process has assigned to such names."""


def mark_of(method: str) -> Mark:
    """Return the mark of a method; a variant such as `c4,H=2` has the mark of its method."""
    name = Label.parse(method).kind
    mark = MARKS.get(name) or TAKEN.get(name)
    if mark is None:  # start at the name's hash; take a free mark in the least used colour
        first = zlib.crc32(name.encode()) % len(SPARE)
        colours = Counter(taken.colour for taken in TAKEN.values())
        free = [m for m in SPARE[first:] + SPARE[:first] if m not in TAKEN.values()]
        mark = TAKEN[name] = min(free or SPARE, key=lambda m: colours[m.colour])
    return mark


def is_variant(method: str) -> bool:
    """Whether a label names a variant of a method; variants get hollow marks.

    A setting that a calibration froze is also a variant.
    """
    label = Label.parse(method)
    return not label.is_plain or label.kind != label.method


def shade_of(method: str) -> str:
    """Return a method's colour: lighter for a variant, darker for a frozen setting."""
    colour, label = mark_of(method).colour, Label.parse(method)
    if label.kind != label.method:
        return mixed(colour, 0, 0.5)
    return colour if label.is_plain else mixed(colour, 255, 0.5)


def mixed(colour: str, other: int, share: float) -> str:
    """Mix a colour with a share of black (0), white (255) or a grey between them."""
    parts = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    return "#" + "".join(f"{round(part + (other - part) * share):02x}" for part in parts)
