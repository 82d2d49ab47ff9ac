"""The figures by name: which data each is drawn from, and what to see in it."""

import difflib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

import matplotlib as mpl
import polars as pl
from matplotlib.figure import Figure

from c4.analysis import Evidence
from c4.errors import ConfigError
from c4.figures._phase import phase_diagram
from c4.figures._stabilization import stabilization_figure
from c4.figures._style import STYLE

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
    return Hung(exhibit, files, data)


def save_figure(figure: Figure, path: Path) -> None:
    """Write a figure with its fonts and without the time: equal figures are equal files."""
    metadata = {"pdf": {"CreationDate": None}, "svg": {"Date": None}}.get(path.suffix[1:])
    with mpl.rc_context(STYLE):
        figure.savefig(path, dpi=DPI, metadata=metadata)
