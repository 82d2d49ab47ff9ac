"""Figures on a dark ground: what is dark by itself becomes lighter, and light areas darker."""

from typing import Any

import numpy as np
import numpy.typing as npt
from matplotlib.colors import to_rgba_array
from matplotlib.figure import Figure

PARTS = ("color", "facecolor", "edgecolor", "markerfacecolor", "markeredgecolor")
DARK, DIM, LIGHT = 0.2, 0.45, 0.85
"""Brightness below which a colour becomes light, below which it is lifted, and above which an
area is sunk into the ground."""
Colours = npt.NDArray[np.float64]


def adapt_to_ground(figure: Figure) -> None:
    """Exchange the colours that a dark ground would swallow; a light ground needs nothing."""
    (ground,) = to_rgba_array(figure.get_facecolor())
    if ground[:3].mean() >= 0.5:
        return
    frames = {figure.patch, *(ax.patch for ax in figure.axes)}
    for artist in figure.findobj(lambda artist: artist not in frames):
        for part in PARTS:
            _adapt(artist, part, ground)


def _adapt(artist: Any, part: str, ground: Colours) -> None:
    get, put = (getattr(artist, f"{verb}_{part}", None) for verb in ("get", "set"))
    if get is None or put is None:
        return
    try:
        colours = to_rgba_array(get())
    except (TypeError, ValueError):  # none, or one that follows another
        return
    new = np.array([_on(colour, ground, is_area=part != "color") for colour in colours])
    if len(new) and not np.array_equal(new, colours):
        put(new[0] if len(new) == 1 else new)


def _on(colour: Colours, ground: Colours, *, is_area: bool) -> Colours:
    """A colour as it is seen on a dark ground. (4,) -> (4,)"""
    bright = colour[:3].mean()
    if is_area and bright > LIGHT:
        share, other = 0.8, ground[:3]
    elif bright < DARK:
        share, other = 0.85, np.ones(3)
    else:
        share, other = (0.35 if bright < DIM else 0.0), np.ones(3)
    return np.append(colour[:3] + (other - colour[:3]) * share, colour[3])
