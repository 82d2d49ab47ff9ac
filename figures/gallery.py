"""The figures by name: their data, the functions that draw them, and how to read them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

import matplotlib as mpl
import polars as pl
from matplotlib.figure import Figure

from c4.analysis import Library
from c4.errors import unknown_name
from c4.errors.system import require_writable_file
from c4.figures.bars import blocks_figure, time_share_figure, totals_figure
from c4.figures.dark import adapt_to_ground
from c4.figures.frontier import frontier_figure, h_sweep_figure
from c4.figures.gates import gates_figure
from c4.figures.phase import phase_diagram
from c4.figures.stabilization import stabilization_figure
from c4.figures.style import DPI, Width, settings, spell_drawable
from c4.figures.text import text_figure
from c4.figures.trace import trace_figure


class Format(StrEnum):
    """File format of a figure."""

    PDF = "pdf"
    PNG = "png"
    SVG = "svg"


@dataclass(frozen=True)
class FigureKind:
    """A figure that can be drawn from the runs on disk."""

    name: str
    data: Callable[[Library], pl.DataFrame]
    """Returns the frame to draw and to write beside the figure; empty without data."""
    draw: Callable[[pl.DataFrame, Width | None], Figure]
    see: str
    """What to look for in the figure."""
    needs: str
    """Commands that produce its data."""


FIGURES = {
    figure_kind.name: figure_kind
    for figure_kind in (
        FigureKind(
            "stabilization",
            lambda library: library.settling,
            stabilization_figure,
            "See how soon the curves of short answers, long reasoning and code rise, and how long "
            "before it settles an answer first appears (tick).",
            "c4 record --task math",
        ),
        FigureKind(
            "phase-diagram",
            lambda library: library.phases,
            phase_diagram,
            "Exits in the shaded half came before the answer had settled. Hollow marks are decodes "
            "that a gate never stopped. A gate that hardly ever stops is not safe for that reason, "
            "so compare its premature exits with all its exits.",
            "c4 record --task math",
        ),
        FigureKind(
            "gates",
            lambda library: library.gate_signals,
            gates_figure,
            "See the signals in the answer's region when each gate stops, and whether gates stop "
            "before or after answers settle (ticks).",
            "c4 record --task math",
        ),
        FigureKind(
            "trace",
            lambda library: library.trace,
            trace_figure,
            "See the answer read at each step of one trajectory, and what each gate waits for.",
            "c4 record --task gsm8k",
        ),
        FigureKind(
            "text",
            lambda library: library.texts,
            text_figure,
            "See the same trajectory as each gate would have returned it. Grey tokens were still "
            "masked when the gate stopped.",
            "c4 record --task gsm8k",
        ),
        FigureKind(
            "blocks",
            lambda library: library.blocks,
            blocks_figure,
            "See where a method saves steps: a gate cuts off the last blocks, a sampler saves in "
            "every block. Above 100% a method spends more steps than planned.",
            "c4 run --method baseline --method c4 --task gsm8k",
        ),
        FigureKind(
            "totals",
            lambda library: library.blocks,
            totals_figure,
            "Compare the steps spent with the accuracy kept; losing over two points is red.",
            "c4 run --method baseline --method c4 --task gsm8k",
        ),
        FigureKind(
            "time-share",
            lambda library: library.time_shares,
            time_share_figure,
            "See how much of the measured time each block takes.",
            "c4 run --method baseline --method c4 --task gsm8k",
        ),
        FigureKind(
            "h-sweep",
            lambda library: library.h_sweep,
            h_sweep_figure,
            "See how tolerating more holes changes the steps, and whether it costs accuracy.",
            "c4 run --method c4 --task gsm8k; c4 run --method c4 --set H=0 --task gsm8k",
        ),
        FigureKind(
            "frontier",
            lambda library: library.main_totals,
            frontier_figure,
            "Up and to the left is better. The band reaches two points below full decoding.",
            "c4 run --method baseline --method c4 --task gsm8k",
        ),
    )
}
"""All figures, by name."""


def choose_figures(names: Sequence[str]) -> list[FigureKind]:
    """Return the named figures in the order of `FIGURES`; `all` means every figure."""
    for name in names:
        if name not in FIGURES and name != "all":
            raise unknown_name("figure", name, [*FIGURES, "all"])
    return [x for name, x in FIGURES.items() if name in names or "all" in names]


def choose_formats(names: Sequence[str]) -> list[Format]:
    """Return the named formats, each once."""
    unknown = [name for name in names if name not in list(Format)]
    if unknown:
        raise unknown_name("format", unknown[0], Format)
    return [kind for kind in Format if kind in names]


@dataclass(frozen=True)
class Drawing:
    """A figure that has been drawn, and its files."""

    figure_kind: FigureKind
    frame: pl.DataFrame
    files: list[Path]
    data: Path


def figure_files(figure_kind: FigureKind, folder: Path, formats: list[Format]) -> list[Path]:
    """Paths of a figure in every format, followed by the path of its data."""
    return [folder / f"{figure_kind.name}.{kind}" for kind in (*formats, "csv")]


def draw_figure(
    figure_kind: FigureKind,
    library: Library,
    folder: Path,
    formats: list[Format],
    width: Width | None = None,
) -> Drawing | None:
    """Draw a figure and write it with its data; None if there is nothing to draw."""
    frame = figure_kind.data(library)
    if frame.is_empty():
        return None
    folder.mkdir(parents=True, exist_ok=True)
    figure = figure_kind.draw(frame, width)
    adapt_to_ground(figure)
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
    """Draw and write the figures that have data.

    Args:
        note: progress callback.
    """
    for figure_kind in figure_kinds:
        for file in figure_files(figure_kind, folder, formats):
            require_writable_file(file)
    drawings = []
    for i, figure_kind in enumerate(figure_kinds, 1):
        note(f"drawing {figure_kind.name}, {i} of {len(figure_kinds)}")
        drawings.append(draw_figure(figure_kind, library, folder, formats, width))
    return [one for one in drawings if one is not None]


def save_figure(figure: Figure, path: Path) -> None:
    """Write a figure without a time stamp, so that equal figures give equal files."""
    metadata = {"pdf": {"CreationDate": None}, "svg": {"Date": None}}.get(path.suffix[1:])
    spell_drawable(figure)
    with mpl.rc_context(settings()):
        figure.savefig(path, dpi=DPI, metadata=metadata)
