"""Figures: one function per figure takes a data frame and returns a Matplotlib figure.

`FIGURES` lists them by name, with the data that each needs; `draw_figure` draws and writes one
figure, and `draw_figures` several.
"""

from c4.figures.bars import blocks_figure, time_share_figure, totals_figure
from c4.figures.frontier import frontier_figure, h_sweep_figure
from c4.figures.gallery import FIGURES, draw_figure, draw_figures, save_figure
from c4.figures.gates import gates_figure
from c4.figures.phase import phase_diagram
from c4.figures.stabilization import stabilization_figure
from c4.figures.style import Width
from c4.figures.text import text_figure
from c4.figures.trace import trace_figure

__all__ = [
    "FIGURES",
    "Width",
    "blocks_figure",
    "draw_figure",
    "draw_figures",
    "frontier_figure",
    "gates_figure",
    "h_sweep_figure",
    "phase_diagram",
    "save_figure",
    "stabilization_figure",
    "text_figure",
    "time_share_figure",
    "totals_figure",
    "trace_figure",
]
