"""The figures by name: which data each is drawn from, and what to see in it."""

import difflib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

import matplotlib as mpl
import polars as pl
from matplotlib.figure import Figure

from c4.analysis import Evidence, method_totals
from c4.errors import ConfigError
from c4.figures._bars import blocks_figure, time_share_figure, totals_figure
from c4.figures._frontier import frontier_figure, h_sweep_figure
from c4.figures._gates import gates_figure
from c4.figures._phase import phase_diagram
from c4.figures._stabilization import stabilization_figure
from c4.figures._style import STYLE
from c4.figures._text import text_figure
from c4.figures._trace import trace_figure

DPI = 200


class Format(StrEnum):
    """How a figure is kept."""

    PDF = "pdf"
    PNG = "png"
    SVG = "svg"


@dataclass(frozen=True)
class Exhibit:
    """A figure that can be drawn from what is on disk."""

    name: str
    data: Callable[[Evidence], pl.DataFrame]
    """The flat frame that is drawn, and written beside the figure. Empty: nothing to draw."""
    draw: Callable[[pl.DataFrame], Figure]
    see: str
    """What a reader should notice."""
    needs: str
    """The command that makes its data."""


EXHIBITS = {
    exhibit.name: exhibit
    for exhibit in (
        Exhibit(
            "stabilization",
            lambda evidence: evidence.settling,
            stabilization_figure,
            "Short answers settle in the first steps, long reasoning near the end; the answer is "
            "first shown well before it stays.",
            "c4 record --task math",
        ),
        Exhibit(
            "phase-diagram",
            lambda evidence: evidence.phases,
            phase_diagram,
            "Marks in the shaded half stopped before the answer had settled: the margin gates do "
            "so on long reasoning, CVEE hardly ever.",
            "c4 record --task math",
        ),
        Exhibit(
            "gates",
            lambda evidence: evidence.gate_signals,
            gates_figure,
            "What stands where the answer is due when each gate stops, and where answers settle "
            "(ticks): on long reasoning the margin gates stop left of them.",
            "c4 record --task math",
        ),
        Exhibit(
            "trace",
            lambda evidence: evidence.trace,
            trace_figure,
            "One trajectory: which answer is read at each step, and what each gate waits for.",
            "c4 record --task gsm8k",
        ),
        Exhibit(
            "text",
            lambda evidence: evidence.texts,
            text_figure,
            "The same trajectory as each gate would have handed it over; grey was filled by force.",
            "c4 record --task gsm8k",
        ),
        Exhibit(
            "blocks",
            lambda evidence: evidence.blocks,
            blocks_figure,
            "A gate cuts off the last blocks, a sampler thins every one of them.",
            "c4 run --method baseline --method c4 --task gsm8k",
        ),
        Exhibit(
            "totals",
            lambda evidence: evidence.blocks,
            totals_figure,
            "Steps saved against accuracy kept; a loss past two points is red.",
            "c4 run --method baseline --method c4 --task gsm8k",
        ),
        Exhibit(
            "time-share",
            lambda evidence: evidence.time_shares,
            time_share_figure,
            "Which blocks the seconds go to, measured block by block.",
            "c4 run --method baseline --method c4 --task gsm8k",
        ),
        Exhibit(
            "h-sweep",
            lambda evidence: evidence.h_sweep,
            h_sweep_figure,
            "More tolerated holes, fewer steps; accuracy does not follow in step.",
            "c4 run --method c4 --set H=0 --task gsm8k, and so for other H",
        ),
        Exhibit(
            "frontier",
            lambda evidence: method_totals(evidence.main_outcomes),
            frontier_figure,
            "Up and to the left is better; the band is two points below full decoding.",
            "c4 run --method baseline --method c4 --task gsm8k",
        ),
    )
}


def choose_exhibits(names: Sequence[str]) -> list[Exhibit]:
    """Figures by name, in their own order; `all` is every one."""
    for name in names:
        if name not in EXHIBITS and name != "all":
            near = difflib.get_close_matches(name, EXHIBITS, n=3) or list(EXHIBITS)
            raise ConfigError(f"no figure named {name!r}; known here: {', '.join(near)}")
    return [x for name, x in EXHIBITS.items() if name in names or "all" in names]


def choose_formats(names: Sequence[str]) -> list[Format]:
    """Formats by name, each once."""
    unknown = [name for name in names if name not in list(Format)]
    if unknown:
        raise ConfigError(f"no format named {unknown[0]!r}; there are: {', '.join(Format)}")
    return [kind for kind in Format if kind in names]


@dataclass(frozen=True)
class Hung:
    """A figure that has been drawn and written."""

    exhibit: Exhibit
    frame: pl.DataFrame
    files: list[Path]
    data: Path


def hang(exhibit: Exhibit, evidence: Evidence, folder: Path, formats: list[Format]) -> Hung | None:
    """Draw a figure and write it with its data; None where there is nothing to draw."""
    frame = exhibit.data(evidence)
    if frame.is_empty():
        return None
    folder.mkdir(parents=True, exist_ok=True)
    figure = exhibit.draw(frame)
    files = [folder / f"{exhibit.name}.{kind}" for kind in formats]
    for file in files:
        save_figure(figure, file)
    data = folder / f"{exhibit.name}.csv"
    frame.write_csv(data)
    return Hung(exhibit, frame, files, data)


def save_figure(figure: Figure, path: Path) -> None:
    """Write a figure with its fonts and without the time: equal figures are equal files."""
    metadata = {"pdf": {"CreationDate": None}, "svg": {"Date": None}}.get(path.suffix[1:])
    with mpl.rc_context(STYLE):
        figure.savefig(path, dpi=DPI, metadata=metadata)
