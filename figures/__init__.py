"""Figures: one function for each, data frame in, Matplotlib figure out, as wide as is asked.

`FIGURES` knows them by name, with the data each is drawn from; `draw_figure` draws one and writes
it, `draw_figures` several.
"""

from c4.figures._bars import blocks_figure, time_share_figure, totals_figure
from c4.figures._frontier import frontier_figure, h_sweep_figure
from c4.figures._gallery import (
    FIGURES,
    Drawing,
    FigureKind,
    Format,
    choose_figures,
    choose_formats,
    draw_figure,
    draw_figures,
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
    "FIGURES",
    "Drawing",
    "FigureKind",
    "Format",
    "Width",
    "blocks_figure",
    "choose_figures",
    "choose_formats",
    "draw_figure",
    "draw_figures",
    "frontier_figure",
    "gates_figure",
    "h_sweep_figure",
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
