"""The figures by name: which data each is drawn from, and what to see in it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

import matplotlib as mpl
import polars as pl
from matplotlib.figure import Figure
from matplotlib.text import Text

from c4.analysis import Library
from c4.errors import unknown_name
from c4.errors.system import require_writable_file
from c4.figures._bars import blocks_figure, time_share_figure, totals_figure
from c4.figures._frontier import frontier_figure, h_sweep_figure
from c4.figures._gates import gates_figure
from c4.figures._phase import phase_diagram
from c4.figures._stabilization import stabilization_figure
from c4.figures._trace import trace_figure
from c4.figures.style import PROPORTIONAL, STYLE, Width, drawable
from c4.figures.text import text_figure

DPI = 200


class Format(StrEnum):
    """How a figure is kept."""

    PDF = "pdf"
    PNG = "png"
    SVG = "svg"


@dataclass(frozen=True)
class FigureKind:
    """A figure that can be drawn from what is on disk."""

    name: str
    data: Callable[[Library], pl.DataFrame]
    """The flat frame that is drawn, and written beside the figure. Empty: nothing to draw."""
    draw: Callable[[pl.DataFrame, Width | None], Figure]
    see: str
    """What to look for; what there is to see depends on the data."""
    needs: str
    """The commands that make its data."""


FIGURES = {
    figure_kind.name: figure_kind
    for figure_kind in (
        FigureKind(
            "stabilization",
            lambda library: library.settling,
            stabilization_figure,
            "How soon the curves of short answers, long reasoning and code rise, and how far the "
            "first showing of an answer (tick) lies before it stays.",
            "c4 record --task math",
        ),
        FigureKind(
            "phase-diagram",
            lambda library: library.phases,
            phase_diagram,
            "Marks in the shaded half stopped before the answer had settled. Hollow marks never "
            "stopped: a gate that hardly stops is not thereby a safe one, so compare its premature "
            "exits with how often it stopped at all.",
            "c4 record --task math",
        ),
        FigureKind(
            "gates",
            lambda library: library.gate_signals,
            gates_figure,
            "What stands where the answer is due when each gate stops, and whether that is left or "
            "right of where answers settle (ticks).",
            "c4 record --task math",
        ),
        FigureKind(
            "trace",
            lambda library: library.trace,
            trace_figure,
            "One trajectory: which answer is read at each step, and what each gate waits for.",
            "c4 record --task gsm8k",
        ),
        FigureKind(
            "text",
            lambda library: library.texts,
            text_figure,
            "The same trajectory as each gate would have handed it over; grey was filled by force.",
            "c4 record --task gsm8k",
        ),
        FigureKind(
            "blocks",
            lambda library: library.blocks,
            blocks_figure,
            "Where a method saves: in the last blocks, which a gate can cut off, or in every one, "
            "which a sampler can thin; above 100% it spends more than was planned.",
            "c4 run --method baseline --method c4 --task gsm8k",
        ),
        FigureKind(
            "totals",
            lambda library: library.blocks,
            totals_figure,
            "Steps spent against accuracy kept; a loss past two points is red.",
            "c4 run --method baseline --method c4 --task gsm8k",
        ),
        FigureKind(
            "time-share",
            lambda library: library.time_shares,
            time_share_figure,
            "Which blocks the seconds go to, measured block by block.",
            "c4 run --method baseline --method c4 --task gsm8k",
        ),
        FigureKind(
            "h-sweep",
            lambda library: library.h_sweep,
            h_sweep_figure,
            "What more tolerated holes do to steps, and whether accuracy pays for it.",
            "c4 run --method c4 --task gsm8k; c4 run --method c4 --set H=0 --task gsm8k",
        ),
        FigureKind(
            "frontier",
            lambda library: library.main_totals,
            frontier_figure,
            "Up and to the left is better; the band is two points below full decoding.",
            "c4 run --method baseline --method c4 --task gsm8k",
        ),
    )
}


def choose_figures(names: Sequence[str]) -> list[FigureKind]:
    """Figures by name, in their own order; `all` is every one."""
    for name in names:
        if name not in FIGURES and name != "all":
            raise unknown_name("figure", name, [*FIGURES, "all"])
    return [x for name, x in FIGURES.items() if name in names or "all" in names]


def choose_formats(names: Sequence[str]) -> list[Format]:
    """Formats by name, each once."""
    unknown = [name for name in names if name not in list(Format)]
    if unknown:
        raise unknown_name("format", unknown[0], Format)
    return [kind for kind in Format if kind in names]


@dataclass(frozen=True)
class Drawing:
    """A figure that has been drawn and written."""

    figure_kind: FigureKind
    frame: pl.DataFrame
    files: list[Path]
    data: Path


def figure_files(figure_kind: FigureKind, folder: Path, formats: list[Format]) -> list[Path]:
    """Where a figure goes, in every format; its data come last."""
    return [folder / f"{figure_kind.name}.{kind}" for kind in (*formats, "csv")]


def draw_figure(
    figure_kind: FigureKind,
    library: Library,
    folder: Path,
    formats: list[Format],
    width: Width | None = None,
) -> Drawing | None:
    """Draw a figure and write it with its data; None where there is nothing to draw."""
    frame = figure_kind.data(library)
    if frame.is_empty():
        return None
    folder.mkdir(parents=True, exist_ok=True)
    figure = figure_kind.draw(frame, width)
    *files, data = figure_files(figure_kind, folder, formats)
    for file in files:
        save_figure(figure, file)
    frame.write_csv(data)
    return Drawing(figure_kind, frame, files, data)


def draw_figures(
    figure_kinds: Sequence[FigureKind],
    library: Library,
    folder: Path,
    formats: list[Format],
    note: Callable[[str], None] = lambda text: None,
    width: Width | None = None,
) -> list[Drawing]:
    """Draw and write those figures for which there is data.

    Args:
        note: told what is being drawn, for people who wait.
    """
    for figure_kind in figure_kinds:
        for file in figure_files(figure_kind, folder, formats):
            require_writable_file(file)
    drawings = []
    for figure_kind in figure_kinds:
        note(f"drawing {figure_kind.name}")
        drawings.append(draw_figure(figure_kind, library, folder, formats, width))
    return [one for one in drawings if one is not None]


def save_figure(figure: Figure, path: Path) -> None:
    """Write a figure with its fonts and without the time: equal figures are equal files."""
    metadata = {"pdf": {"CreationDate": None}, "svg": {"Date": None}}.get(path.suffix[1:])
    for text in figure.findobj(Text):
        text.set_text(drawable(text.get_text(), PROPORTIONAL))
    with mpl.rc_context(STYLE):
        figure.savefig(path, dpi=DPI, metadata=metadata)
