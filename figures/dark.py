"""Adapt figures to a dark background: dark colours become lighter, light areas darker."""

import numpy as np
import numpy.typing as npt
from matplotlib.artist import Artist
from matplotlib.colors import to_rgba_array
from matplotlib.figure import Figure
from matplotlib.text import Text

ON_AREA = "on-area"
"""Group id of texts that stand on a coloured area and not on the ground."""
PARTS = ("color", "facecolor", "edgecolor", "markerfacecolor", "markeredgecolor")
DARK, DIM, LIGHT = 0.2, 0.45, 0.85
"""Brightness below which a colour becomes light, below which it is lifted, and above which an
area or a grid line sinks into the ground."""
Colours = npt.NDArray[np.float64]


def adapt_to_ground(figure: Figure) -> None:
    """Replace colours that a dark background would hide; a light one needs nothing."""
    (ground,) = to_rgba_array(figure.get_facecolor())
    if ground[:3].mean() >= 0.5:
        return
    grounds = {figure, figure.patch, *figure.axes, *(ax.patch for ax in figure.axes)}
    # Lines along an axis, which a style makes as light as it likes.
    styled: set[Artist] = set()
    for ax in figure.axes:
        styled |= {*ax.spines.values(), *ax.xaxis.get_ticklines(), *ax.yaxis.get_ticklines()}
    for artist in set(figure.findobj()) - grounds:
        if artist.get_gid() == ON_AREA:
            artist.set(color=ground)
        else:
            _adapt(artist, ground, sinks=not isinstance(artist, Text) and artist not in styled)


def _adapt(artist: Artist, ground: Colours, *, sinks: bool) -> None:
    # All are read before any is set: a marker may have the colour of its line.
    for part, colours in [(part, _colours(artist, part)) for part in PARTS]:
        new = np.array([_on(colour, ground, sinks=sinks) for colour in colours])
        if len(new) and not np.array_equal(new, colours):
            getattr(artist, f"set_{part}")(new[0] if len(new) == 1 else new)


def _colours(artist: Artist, part: str) -> Colours:
    """The colours of a part of an artist; empty where it has none that can be changed. (n, 4)"""
    if not hasattr(artist, f"set_{part}"):
        return np.empty((0, 4))
    try:
        return to_rgba_array(getattr(artist, f"get_{part}")())
    except (AttributeError, TypeError, ValueError):  # none, or one that follows another
        return np.empty((0, 4))


def _on(colour: Colours, ground: Colours, *, sinks: bool) -> Colours:
    """A colour as drawn on a dark background, into which a light one may sink. (4,) -> (4,)"""
    bright = colour[:3].mean()
    if sinks and bright > LIGHT:
        share, other = 0.8, ground[:3]
    elif bright < DARK:
        share, other = 0.85, np.ones(3)
    else:
        share, other = (0.35 if bright < DIM else 0.0), np.ones(3)
    return np.append(colour[:3] + (other - colour[:3]) * share, colour[3])
