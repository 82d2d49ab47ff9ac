"""The style of all figures: sizes, colours, panels and legends.

The colours and markers of methods are in `c4.analysis.colours`. Matplotlib's settings are changed
only while a figure is drawn.
"""

import logging
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from enum import StrEnum
from functools import wraps
from io import BytesIO
from logging.handlers import QueueHandler
from math import ceil
from pathlib import Path
from queue import SimpleQueue
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

from c4.analysis.colours import FAMILY_COLOURS, Mark, is_variant, mark_of, shade_of
from c4.analysis.paper_names import method_label, model_label, task_label
from c4.errors import ConfigError
from c4.errors.system import reason, require_plain_file
from c4.figures.fit import PROPORTIONAL, drawable, fitted, points, text_width

COLUMN = 3.4
PAGE = 7.0
"""Widths in inches of one column and of a two-column page."""
DPI = 200


class Width(StrEnum):
    """Width of a figure. By default it depends on the number of panels."""

    COLUMN = "column"
    PAGE = "page"


# Start from all of Matplotlib's defaults, since it reads a matplotlibrc in the current folder. Such
# a file must neither change a figure nor make Matplotlib run LaTeX.
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
    "pdf.fonttype": 42,  # embed fonts as TrueType, so that text stays text
    "ps.fonttype": 42,
    "svg.hashsalt": "c4",  # equal figures give equal bytes
    "text.parse_math": False,  # names and answers may contain dollar signs
}
Given = ParamSpec("Given")
Made = TypeVar("Made")


def styled(draw: Callable[Given, Made]) -> Callable[Given, Made]:
    """Decorate a figure function: check its width, and draw with c4's Matplotlib settings."""

    @wraps(draw)
    def drawn(*args: Given.args, **named: Given.kwargs) -> Made:
        width = named.get("width", args[1] if len(args) > 1 else None)
        if width is not None and width not in list(Width):
            raise ConfigError(f"width must be 'column' or 'page', not {width!r}")
        with mpl.rc_context(settings()):
            return draw(*args, **named)

    return drawn


LARGEST_STYLE = 2**20
"""Maximum size of a style file, in bytes."""
FORBIDDEN = ("backend", "text.usetex", "text.latex", "pgf.", "animation.", "savefig.directory")
"""Settings that a style may not change: they run programs or choose where files are written."""

_user_style: ContextVar[Mapping[str, Any]] = ContextVar("_user_style", default={})  # noqa: B039


@contextmanager
def use_style(style: Mapping[str, Any]) -> Iterator[None]:
    """Within this context, draw figures with Matplotlib settings that override c4's."""
    token = _user_style.set(style)
    try:
        yield
    finally:
        _user_style.reset(token)


def settings() -> Any:
    """Matplotlib settings for a figure: c4's own, overridden by the user's style."""
    return {**STYLE, **_user_style.get()}


def read_style(path: Path) -> dict[str, Any]:
    """Read a Matplotlib style file; raise an error for settings in `FORBIDDEN`."""
    # Matplotlib only logs lines that it cannot read, so collect its warnings.
    said: SimpleQueue[logging.LogRecord] = SimpleQueue()
    logger, handler = logging.getLogger("matplotlib"), QueueHandler(said)
    handler.setLevel(logging.WARNING)
    logger.addHandler(handler)
    logger.propagate = False
    try:
        require_plain_file(path, LARGEST_STYLE)
        with warnings.catch_warnings(action="ignore"):
            found: Any = mpl.rc_params_from_file(str(path), use_default_template=False)
    except (OSError, ValueError, KeyError) as error:
        raise ConfigError(f"{path}: not a Matplotlib style ({reason(error)})") from error
    finally:
        logger.removeHandler(handler)
        logger.propagate = True
    if not said.empty():
        words = said.get().getMessage().split()
        raise ConfigError(f"{path}: not a Matplotlib style ({' '.join(words)})")
    for name in found:
        if name.startswith(FORBIDDEN):
            raise ConfigError(f"{path}: a style may not set {name}; leave it out")
    return dict(found)


INK = "#222222"
QUIET = "#8a8a8a"
FAINT = "#e4e4e4"
ALARM = "#b2182b"
DANGER = "#fbe9e7"
"""Background colour of the premature region."""

FAMILY_LINES = {"letters": "-", "long_reasoning": (0, (5, 1.5)), "code": (0, (1.5, 1))}
TASK_MARKERS = "oDs^vPXhp<>d8"
MORE_MARKERS = "DsPXhd^v<>*p8oH"
"""Markers for further settings of a method whose own marker is taken."""


class ShownFigure(Figure):
    """A figure that notebooks display, although it is made without pyplot."""

    def _repr_png_(self) -> bytes:
        picture = BytesIO()
        spell_drawable(self)
        with mpl.rc_context(settings()):
            self.savefig(picture, format="png", dpi=DPI)
        return picture.getvalue()


def spell_drawable(figure: Figure) -> None:
    """Replace characters that the font lacks with an empty box."""
    for text in figure.findobj(Text):
        text.set_text(drawable(text.get_text(), PROPORTIONAL))


def new_figure(width: float, height: float) -> Figure:
    """Make an empty figure without pyplot; sizes are in inches."""
    figure = ShownFigure(
        figsize=(width, height), layout=ConstrainedLayoutEngine(h_pad=0.05, hspace=0.04)
    )
    FigureCanvasAgg(figure)
    return figure


class Grid(NamedTuple):
    """Layout of panels, which fill it row by row."""

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
    """Make a grid of the given width, or of as much of the page as the panels need."""
    if width == Width.COLUMN:
        columns = min(2, panels)
        return Grid(panels, columns, COLUMN / columns)
    columns = panels
    if panels > 4:  # 3 columns if they fill every row and 4 do not
        columns = 3 if panels % 3 == 0 and panels % 4 else 4
    inches = PAGE / columns
    if width is None:
        inches = {1: COLUMN, 2: 2.6}.get(columns, inches)
    return Grid(panels, columns, inches)


def panel_grid(
    grid: Grid, height: float | Sequence[float], head: float = 0.55
) -> tuple[Figure, list[Axes]]:
    """Make a figure with the panels of a grid.

    Args:
        height: height of a panel with its title, in inches; one number, or one per row.
        head: space above the panels for a legend, in inches.
    """
    heights = [height] * grid.rows if isinstance(height, int | float) else list(height)
    figure = new_figure(grid.width, sum(heights) + head)
    panels = figure.subplots(grid.rows, grid.columns, squeeze=False, height_ratios=heights)
    axes = list(panels.flat)
    for spare in axes[grid.panels :]:
        spare.remove()
    return figure, axes[: grid.panels]


Key = tuple[str, str, str]
"""Model, task and family of a panel."""
PANEL = ("model", "task", "family")
"""Columns that identify the panel of a row."""


def panel_keys(frame: pl.DataFrame) -> list[Key]:
    """Keys of all panels, in the frame's order."""
    return frame.select(PANEL).unique(maintain_order=True).rows()


def panel_rows(frame: pl.DataFrame, key: Key) -> pl.DataFrame:
    """Rows of a frame that belong to a panel."""
    return frame.filter((pl.col("model") == key[0]) & (pl.col("task") == key[1]))


def panel_title(key: Key, frame: pl.DataFrame, inches: float, size: float) -> str:
    """Name of the task, below that of the model if there are several models."""
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
        beside: grey text to the right of the title.
        left: width of the ticks and labels to the left of the panel, in inches.
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
    """Make a legend handle that draws nothing in a panel."""
    return Line2D([], [], solid_capstyle="butt", **properties)


def draw_apart(methods: Sequence[str], *, shaded: bool = False) -> dict[str, Mark]:
    """Choose colour, marker and fill of each method of a figure; settings of one method differ.

    Args:
        shaded: draw variants lighter, for figures in which hollow markers mean something else.
    """
    drawn: dict[str, Mark] = {}
    turns: Counter[Mark] = Counter()
    for method in methods:
        mark = mark_of(method)
        one = Mark(mark.colour, mark.marker, "none" if is_variant(method) else "full")
        if shaded:
            one = Mark(shade_of(method), mark.marker, "full")
        markers = [mark.marker, *MORE_MARKERS.replace(mark.marker, "")]
        drawn[method] = replace(one, marker=markers[turns[one] % len(markers)])
        turns[one] += 1
    return drawn


def method_legend(
    figure: Figure, drawn: Mapping[str, Mark], *more: Line2D, suffix: str = ""
) -> None:
    """Put a legend of the methods and of further lines above the panels."""
    handles = [
        sample(
            color=one.colour,
            marker=one.marker,
            label=method_label(method) + suffix,
            linestyle="",
            markersize=5,
            fillstyle=one.fill,
        )
        for method, one in drawn.items()
    ]
    put_legend(figure, [*handles, *more])


HANDLE, EDGES = 0.37, 0.15
"""Inches that a legend needs per label for its handle, and at its sides, at font size 7."""
LEGEND_LINE, LEGEND_LINES = 0.15, 2
"""Height of a legend line in inches, and the number of lines that figures have room for."""


def put_legend(figure: Figure, handles: Sequence[Line2D]) -> None:
    """Put a legend above the panels in as many columns as fit; the figure grows with its lines."""
    if not handles:
        return
    size = points("legend.fontsize")
    room = figure.get_figwidth() - (HANDLE + EDGES) * size / 7
    labels = [fitted(str(handle.get_label()), room, size) for handle in handles]
    widths = [HANDLE * size / 7 + text_width(label, size) for label in labels]
    columns = 1  # fallback; the loop finds the fewest lines that fit
    for lines in range(1, len(labels)):
        most = ceil(len(labels) / lines)
        wide = sum(max(column) for column in np.array_split(widths, most))
        if wide + EDGES * size / 7 < figure.get_figwidth():
            columns = most
            break
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


def share_axis(ax: Axes, axis: Literal["x", "y"]) -> None:
    """Set the ticks of an axis that runs from 0 to 1."""
    setter = ax.set_xticks if axis == "x" else ax.set_yticks
    setter([0, 0.25, 0.5, 0.75, 1.0], labels=["0", "", ".5", "", "1"])


def quiet_grid(ax: Axes, axis: Literal["x", "y", "both"] = "both") -> None:
    ax.grid(True, axis=axis, color=FAINT, linewidth=0.5)
    ax.set_axisbelow(True)
