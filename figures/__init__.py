"""Figures: one function for each, data frame in, Matplotlib figure out, as wide as is asked.

`EXHIBITS` knows them by name, with the data each is drawn from; `hang` draws one and writes it,
`hang_all` several.
"""

from c4.figures._bars import blocks_figure, time_share_figure, totals_figure
from c4.figures._frontier import frontier_figure, h_sweep_figure
from c4.figures._gallery import (
    EXHIBITS,
    Exhibit,
    Format,
    Hung,
    choose_exhibits,
    choose_formats,
    hang,
    hang_all,
    save_figure,
)
from c4.figures._gates import gates_figure
from c4.figures._page import write_page
from c4.figures._phase import phase_diagram
from c4.figures._stabilization import stabilization_figure
from c4.figures._style import Width
from c4.figures._text import terminal_texts, text_figure
from c4.figures._trace import trace_figure

__all__ = [
    "EXHIBITS",
    "Exhibit",
    "Format",
    "Hung",
    "Width",
    "blocks_figure",
    "choose_exhibits",
    "choose_formats",
    "frontier_figure",
    "gates_figure",
    "h_sweep_figure",
    "hang",
    "hang_all",
    "phase_diagram",
    "save_figure",
    "stabilization_figure",
    "terminal_texts",
    "text_figure",
    "time_share_figure",
    "totals_figure",
    "trace_figure",
    "write_page",
]
