"""Figures: one function for each, data frame in, Matplotlib figure out.

`EXHIBITS` knows them by name, with the data each is drawn from; `hang` draws one and writes it.
"""

from c4.figures._gallery import (
    EXHIBITS,
    Exhibit,
    Format,
    Hung,
    choose_exhibits,
    choose_formats,
    hang,
    save_figure,
)
from c4.figures._phase import phase_diagram
from c4.figures._stabilization import stabilization_figure

__all__ = [
    "EXHIBITS",
    "Exhibit",
    "Format",
    "Hung",
    "choose_exhibits",
    "choose_formats",
    "hang",
    "phase_diagram",
    "save_figure",
    "stabilization_figure",
]
