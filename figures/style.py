"""One look for every figure: sizes, colours, and the mark that a method keeps everywhere.

The marks of methods are in `c4.analysis.colours`. Settings are applied while a figure is made and
never kept.
"""

import logging
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from enum import StrEnum
from functools import wraps
from io import BytesIO
from math import ceil
from pathlib import Path
from typing import Any, Literal, NamedTuple, ParamSpec, TypeVar

import matplotlib as mpl
import numpy as np
import polars as pl
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.lines import Line2D
from matplotlib.text import Text

from c4.analysis.colours import FAMILY_COLOURS, is_variant, mark_of, shade_of
from c4.analysis.names import model_label, task_label
from c4.errors import ConfigError
from c4.errors.system import reason, require_plain_file
from c4.figures._fit import PROPORTIONAL, drawable, fitted, points, text_width

COLUMN = 3.4
PAGE = 7.0
"""Widths in inches: one column, and the page of two."""
DPI = 200


class Width(StrEnum):
    """The width that a user asks for; without one it depends on the number of panels."""

    COLUMN = "column"
    PAGE = "page"


# All of matplotlib's own defaults first: it reads a matplotlibrc in the current folder, and such a
# file must neither change a figure nor have LaTeX run.
STYLE: Any = {key: mpl.rcParamsDefault[key] for key in mpl.rcParamsDefault if "backend" not in key}
STYLE |= {
    "font.family": "sans-serif",
    "font.sans-serif": [PROPORTIONAL],
    "font.size": 7.5,
    "axes.titlesize": 8,
    "axes.labelsize": 7.5,
    "axes.linewidth": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlelocation": "left",
    "xtick.labelsize": 7,
    "ytick.labelsize": 7,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "legend.fontsize": 7,
    "legend.frameon": False,
    "lines.linewidth": 1.3,
    "pdf.fonttype": 42,  # fonts embedded as TrueType: text stays text
    "ps.fonttype": 42,
    "svg.hashsalt": "c4",  # the same figure, the same bytes
    "text.parse_math": False,  # a name or an answer may hold any number of dollars
}
Given = ParamSpec("Given")
Made = TypeVar("Made")


def styled(draw: Callable[Given, Made]) -> Callable[Given, Made]:
    """Decorate a figure function: c4's settings hold while it runs, and its width is one of two."""

    @wraps(draw)
    def drawn(*args: Given.args, **named: Given.kwargs) -> Made:
        width = named.get("width", args[1] if len(args) > 1 else None)
        if width is not None and width not in list(Width):
            raise ConfigError(f"a figure is as wide as a column or a page, not {width!r}")
        with mpl.rc_context(settings()):
            return draw(*args, **named)

    return drawn


FORBIDDEN = ("backend", "text.usetex", "text.latex", "pgf.", "animation.", "savefig.directory")
"""Settings that a style may not change: they would run other programs, or choose where files go."""


@dataclass(frozen=True)
class Look:
    """What a user wants otherwise in every figure of a call."""

    style: Mapping[str, Any] = field(default_factory=dict)
    """Matplotlib settings over c4's own."""
    title: str | None = None
    columns: int | None = None
    """Panels side by side."""


USUAL = Look()
LOOK: ContextVar[Look] = ContextVar("LOOK", default=USUAL)


@contextmanager
def looking(look: Look) -> Iterator[None]:
    """Within this context, figures are drawn as a user wants them."""
    now = LOOK.set(look)
    try:
        yield
    finally:
        LOOK.reset(now)


def settings() -> Any:
    """Matplotlib's settings for a figure: c4's own, with those of the user's style over them."""
    return {**STYLE, **LOOK.get().style}


def read_style(path: Path) -> dict[str, Any]:
    """The settings in a Matplotlib style file. It is data: what would run a program is refused."""
    try:
        require_plain_file(path, LARGEST_STYLE)
        with quiet_matplotlib() as said:
            settings: Any = dict(mpl.rc_params_from_file(str(path), use_default_template=False))
    except (OSError, ValueError, KeyError) as error:
        raise ConfigError(f"{path}: not a Matplotlib style ({reason(error)})") from error
    if said:
        raise ConfigError(f"{path}: not a Matplotlib style ({' '.join(said[0].split())})")
    for name in settings:
        if name.startswith(FORBIDDEN):
            raise ConfigError(f"{path}: {name} is not taken from a style; leave it out")
    found: dict[str, Any] = settings
    return found


@contextmanager
def quiet_matplotlib() -> Iterator[list[str]]:
    """Yield what Matplotlib warns of, instead of letting it print that."""
    said: list[str] = []
    handler = logging.Handler(logging.WARNING)
    handler.emit = lambda record: said.append(record.getMessage())  # type: ignore[method-assign]
    logger = logging.getLogger("matplotlib")
    before = logger.propagate
    logger.addHandler(handler)
    logger.propagate = False
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield said
    finally:
        logger.removeHandler(handler)
        logger.propagate = before


LARGEST_STYLE = 2**20
"""Bytes that a style file may have."""

INK = "#222222"
QUIET = "#8a8a8a"
FAINT = "#e4e4e4"
ALARM = "#b2182b"
DANGER = "#fbe9e7"
"""Background colour of the premature region."""

FAMILY_LINES = {"letters": "-", "long_reasoning": (0, (5, 1.5)), "code": (0, (1.5, 1))}
TASK_MARKERS = "oDs^vPXhp<>d8"
MORE_MARKERS = "DsPXhd^v<>*p8oH"
"""Marks of further settings of one method."""


class ShownFigure(Figure):
    """A figure that a notebook shows although pyplot does not know it."""

    def _repr_png_(self) -> bytes:
        picture = BytesIO()
        spell_drawable(self)
        with mpl.rc_context(settings()):
            self.savefig(picture, format="png", dpi=DPI)
        return picture.getvalue()


def spell_drawable(figure: Figure) -> None:
    """Spell out the letters of a figure's texts that its font does not have."""
    for text in figure.findobj(Text):
        text.set_text(drawable(text.get_text(), PROPORTIONAL))


def new_figure(width: float, height: float) -> Figure:
    """An empty figure that can be drawn and saved without pyplot."""
    figure = ShownFigure(
        figsize=(width, height), layout=ConstrainedLayoutEngine(h_pad=0.05, hspace=0.04)
    )
    FigureCanvasAgg(figure)
    return figure


class Grid(NamedTuple):
    """How panels are laid out, row by row."""

    panels: int
    columns: int
    inches: float
    """Width of one panel, in inches."""

    @property
    def rows(self) -> int:
        return ceil(self.panels / self.columns)

    @property
    def width(self) -> float:
        return self.columns * self.inches


def lay_out(panels: int, width: Width | None) -> Grid:
    """A grid of a column's or the page's width, or of as much of the page as the panels need."""
    asked = LOOK.get().columns
    if width == Width.COLUMN:
        columns = min(asked or 2, panels)
        return Grid(panels, columns, COLUMN / columns)
    columns = min(asked, panels) if asked else best_columns(panels)
    inches = PAGE / columns
    if width is None:
        inches = {1: COLUMN, 2: 2.6}.get(columns, inches)
    return Grid(panels, columns, inches)


def best_columns(panels: int, most: int = 4) -> int:
    """The number of columns that leaves the last row of panels fullest."""
    return min(most, panels) if panels <= most else 3 if panels % 3 == 0 and panels % 4 else most


def panel_grid(
    grid: Grid, height: float | Sequence[float], head: float = 0.55
) -> tuple[Figure, list[Axes]]:
    """A figure with the panels of a grid.

    Args:
        height: inches of a panel with its title; one number, or one for every row.
        head: inches above the panels, for a legend.
    """
    heights = [height] * grid.rows if isinstance(height, int | float) else list(height)
    figure = new_figure(grid.width, sum(heights) + head)
    panels = figure.subplots(grid.rows, grid.columns, squeeze=False, height_ratios=heights)
    axes = list(panels.flat)
    for spare in axes[grid.panels :]:
        spare.remove()
    return figure, axes[: grid.panels]


Key = tuple[str, str, str]
"""Model, task and family that a panel shows."""


PANEL = ("model", "task", "family")
"""The columns that say in which panel a row is drawn."""


def panel_keys(frame: pl.DataFrame) -> list[Key]:
    """A key for every panel, in the frame's order."""
    return frame.select(PANEL).unique(maintain_order=True).rows()


def panel_rows(frame: pl.DataFrame, key: Key) -> pl.DataFrame:
    """The rows of a frame that are drawn in a panel."""
    return frame.filter((pl.col("model") == key[0]) & (pl.col("task") == key[1]))


def panel_title(key: Key, frame: pl.DataFrame, inches: float, size: float) -> str:
    """The task's name, with the model's above it if there are several models."""
    model, task, _ = key
    names = [task_label(task)]
    if frame["model"].n_unique() > 1:
        names.insert(0, model_label(model))
    return "\n".join(fitted(name, inches, size) for name in names)


def title_panel(
    ax: Axes, key: Key, frame: pl.DataFrame, *, beside: str = "", left: float = 0.45
) -> None:
    """Put a panel's title above it.

    Args:
        beside: what stands at the right of it, in grey.
        left: inches that ticks and labels take at the left of the panel.
    """
    ax.set_title(beside, loc="right", color=QUIET, fontsize=6)
    place = ax.get_subplotspec()
    columns = place.get_gridspec().ncols if place else 1
    room = ax.get_figure(root=True).get_figwidth() / columns - left  # type: ignore[union-attr]
    room -= max((text_width(line, 6) for line in beside.splitlines()), default=0.0)
    ax.set_title(
        panel_title(key, frame, room, points("axes.titlesize")), color=FAMILY_COLOURS[key[2]]
    )


def sample(**properties: Any) -> Line2D:
    """A line that appears only in a legend."""
    return Line2D([], [], solid_capstyle="butt", **properties)


class Drawn(NamedTuple):
    """How a method is drawn in a figure."""

    colour: str
    marker: str
    fill: Literal["full", "none"]


def draw_apart(methods: Sequence[str], *, shaded: bool = False) -> dict[str, Drawn]:
    """How each of a figure's methods is drawn, so that settings of one method can be told apart.

    Args:
        shaded: whether variants are lighter here, because hollow marks mean something else.
    """
    drawn: dict[str, Drawn] = {}
    turns: Counter[Drawn] = Counter()
    for method in methods:
        mark = mark_of(method)
        one = Drawn(mark.colour, mark.marker, "none" if is_variant(method) else "full")
        if shaded:
            one = Drawn(shade_of(method), mark.marker, "full")
        markers = [mark.marker, *MORE_MARKERS.replace(mark.marker, "")]
        drawn[method] = one._replace(marker=markers[turns[one] % len(markers)])
        turns[one] += 1
    return drawn


def method_legend(
    figure: Figure, drawn: Mapping[str, Drawn], labels: Sequence[str], *more: Line2D
) -> None:
    """The methods, and whatever else needs a word, above the panels."""
    handles = [
        sample(
            color=one.colour,
            marker=one.marker,
            label=label,
            linestyle="",
            markersize=5,
            fillstyle=one.fill,
        )
        for one, label in zip(drawn.values(), labels, strict=True)
    ]
    put_legend(figure, [*handles, *more])


HANDLE, EDGES = 0.37, 0.15
"""Inches that a legend needs beside each label, and at its own sides, with letters of 7 points."""
LEGEND_LINE, LEGEND_LINES = 0.15, 2
"""Inches of a line of a legend, and the lines for which figures have room."""


def put_legend(figure: Figure, handles: Sequence[Line2D]) -> None:
    """A legend above the panels, in as many columns as fit; the figure grows with its lines."""
    if not handles:
        return
    size = points("legend.fontsize")
    room = figure.get_figwidth() - (HANDLE + EDGES) * size / 7
    labels = [fitted(str(handle.get_label()), room, size) for handle in handles]
    columns = legend_columns(figure, labels)
    taken = ceil(len(labels) / columns) * LEGEND_LINE * size / 7
    more = max(0.0, taken - LEGEND_LINES * LEGEND_LINE)
    figure.set_figheight(figure.get_figheight() + more)
    figure.legend(
        handles=handles,
        labels=labels,
        loc="outside upper left",
        ncols=columns,
        handletextpad=0.5,
        columnspacing=1.2,
    )


def legend_columns(figure: Figure, labels: Sequence[str]) -> int:
    """How many columns a legend needs: as few lines as fit, all about equally full."""
    size = points("legend.fontsize")
    widths = [HANDLE * size / 7 + text_width(label, size) for label in labels]
    for lines in range(1, len(labels)):
        columns = ceil(len(labels) / lines)
        taken = sum(max(column) for column in np.array_split(widths, columns))
        if taken + EDGES * size / 7 < figure.get_figwidth():
            return columns
    return 1


def share_axis(ax: Axes, axis: Literal["x", "y"]) -> None:
    """Ticks of an axis that runs from 0 to 1."""
    setter = ax.set_xticks if axis == "x" else ax.set_yticks
    setter([0, 0.25, 0.5, 0.75, 1.0], labels=["0", "", ".5", "", "1"])


def quiet_grid(ax: Axes, axis: Literal["x", "y", "both"] = "both") -> None:
    ax.grid(True, axis=axis, color=FAINT, linewidth=0.5)
    ax.set_axisbelow(True)
