"""Adapt figures to a dark background: dark colours become lighter, light areas darker."""

import numpy as np
import numpy.typing as npt
from matplotlib.artist import Artist
from matplotlib.colors import to_rgba_array
from matplotlib.figure import Figure
from matplotlib.text import Text

ON_AREA = "on-area"
"""Group id of texts that are drawn on a coloured area, not on the background."""
PARTS = ("color", "facecolor", "edgecolor", "markerfacecolor", "markeredgecolor")
DARK, DIM, LIGHT = 0.2, 0.45, 0.85
"""Brightness thresholds: colours below the first become light, below the second lighter; areas and
grid lines above the third become nearly as dark as the background."""
Colours = npt.NDArray[np.float64]


def adapt_to_ground(figure: Figure) -> None:
    """Replace colours that a dark background would hide; leave figures on a light one unchanged."""
    (ground,) = to_rgba_array(figure.get_facecolor())
    if ground[:3].mean() >= 0.5:
        return
    grounds = {figure, figure.patch, *figure.axes, *(ax.patch for ax in figure.axes)}
    # Spines and tick lines must stay visible: a user's style may make them light on purpose.
    styled: set[Artist] = set()
    for ax in figure.axes:
        styled |= {*ax.spines.values(), *ax.xaxis.get_ticklines(), *ax.yaxis.get_ticklines()}
    for artist in set(figure.findobj()) - grounds:
        if artist.get_gid() == ON_AREA:
            artist.set(color=ground)
        else:
            _adapt(artist, ground, sinks=not isinstance(artist, Text) and artist not in styled)


def _adapt(artist: Artist, ground: Colours, *, sinks: bool) -> None:
    # Read all colours before setting any: a marker may inherit the colour of its line.
    for part, colours in [(part, _colours(artist, part)) for part in PARTS]:
        new = np.array([_on(colour, ground, sinks=sinks) for colour in colours])
        if len(new) and not np.array_equal(new, colours):
            getattr(artist, f"set_{part}")(new[0] if len(new) == 1 else new)


def _colours(artist: Artist, part: str) -> Colours:
    """Colours of a part of an artist, (n, 4); empty if none can be changed."""
    if not hasattr(artist, f"set_{part}"):
        return np.empty((0, 4))
    try:
        return to_rgba_array(getattr(artist, f"get_{part}")())
    except (AttributeError, TypeError, ValueError):  # no colour, or one derived from another
        return np.empty((0, 4))


def _on(colour: Colours, ground: Colours, *, sinks: bool) -> Colours:
    """Adapt a colour, (4,), to a dark background; `sinks` makes light colours dark."""
    bright = colour[:3].mean()
    if sinks and bright > LIGHT:
        share, other = 0.8, ground[:3]
    elif bright < DARK:
        share, other = 0.85, np.ones(3)
    else:
        share, other = (0.35 if bright < DIM else 0.0), np.ones(3)
    return np.append(colour[:3] + (other - colour[:3]) * share, colour[3])
