"""Bars and lines of steps and time: steps per block, total steps with accuracy, and seconds."""

from collections.abc import Callable

import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from c4.analysis.colours import mark_of, mixed
from c4.analysis.notebook_frames import require_columns
from c4.analysis.paper_names import in_order, method_label
from c4.figures.dark import ON_AREA
from c4.figures.fit import fitted, wrapped
from c4.figures.style import (
    ALARM,
    COLUMN,
    INK,
    PAGE,
    PANEL,
    QUIET,
    Grid,
    Width,
    draw_apart,
    lay_out,
    method_legend,
    panel_grid,
    panel_keys,
    panel_rows,
    quiet_grid,
    styled,
    title_panel,
)

ROW_MARGIN = 0.2
"""Free space in a panel, above the first row and below the last, in rows."""


@styled
def blocks_figure(blocks: pl.DataFrame, width: Width | None = None) -> Figure:
    """Draw the share of its budget that each block uses, per method.

    Columns: model, task, family, method, block, share.
    """
    require_columns(blocks, (*PANEL, "method", "block", "share"))
    blocks = in_order(blocks, "block")
    keys = panel_keys(blocks)
    methods = in_order(blocks.select("method").unique())["method"].to_list()
    figure, axes = panel_grid(lay_out(len(keys), width), height=1.65)
    drawn = draw_apart(methods)
    for ax, key in zip(axes, keys, strict=True):
        panel = panel_rows(blocks, key)
        for method, mark in drawn.items():
            rows = panel.filter(pl.col("method") == method)
            ax.plot(
                rows["block"] + 1,
                100 * rows["share"],
                color=mark.colour,
                marker=mark.marker,
                markersize=3.5,
                fillstyle=mark.fill,
                linestyle="-" if mark.fill == "full" else "--",
                linewidth=1,
                label=method,
            )
        title_panel(ax, key, blocks)
        count = int(panel["block"].max()) + 1  # type: ignore[arg-type]
        ax.set_xticks(range(1, count + 1, 1 + count // 9))
        ax.set_ylim(bottom=0)
        quiet_grid(ax, "y")
    figure.supxlabel("block", fontsize=7.5)
    figure.supylabel("steps used (% of budget)", fontsize=7.5)
    method_legend(figure, drawn)
    return figure


@styled
def totals_figure(blocks: pl.DataFrame, width: Width | None = None) -> Figure:
    """Draw the steps of each method, block after block, with its accuracy as a thin bar below.

    Columns: model, task, family, method, n, block, passes, steps, budget, accuracy, drop, past,
    not_gradable. A drop beyond the tolerance, on the examples shared with the baseline, is marked.
    If methods have different numbers of examples, each row shows its own.
    """
    counts = ("n", "block", "passes", "steps", "budget", "accuracy", "drop", "past", "not_gradable")
    require_columns(blocks, (*PANEL, "method", *counts))
    blocks = blocks.with_columns(uneven=pl.col("n").n_unique().over("model", "task") > 1)
    figure = _method_rows(blocks, width, row_height=0.3, draw=_draw_total)
    sign = "\n" if width == Width.COLUMN else ";  "
    figure.supxlabel(
        f"thick: steps, % of the budget, block by block{sign}thin: accuracy, %", fontsize=7.5
    )
    return figure


def _draw_total(ax: Axes, y: int, rows: pl.DataFrame, method: str) -> None:
    first = rows.row(0, named=True)
    parts = 100 * rows["passes"].to_numpy() / first["budget"]
    _stack(ax, y - 0.08, parts.tolist(), mark_of(method).colour, height=0.5)
    colour = ALARM if first["past"] else INK
    note = f"{first['steps']:.1f} steps"
    if first["accuracy"] is not None:
        accuracy = 100 * first["accuracy"]
        ax.barh(y + 0.3, accuracy, height=0.14, color=colour)
        note += f", {accuracy:.1f}%"
    if first["past"]:
        note += f" (−{first['drop']:.1f})"
    if first["uneven"]:
        note += f", n={first['n']}"
    if first["not_gradable"]:
        note += f", {first['not_gradable']} not gradable"
    _note(ax, y, note, colour)


@styled
def time_share_figure(shares: pl.DataFrame, width: Width | None = None) -> Figure:
    """Draw the share of measured time that each block takes, with seconds and speed at the right.

    Columns: model, task, family, method, block, seconds, share, tps.
    """
    require_columns(shares, (*PANEL, "method", "block", "seconds", "share", "tps"))
    figure = _method_rows(shares, width, row_height=0.27, draw=_draw_time)
    figure.supxlabel("share of the decode's time, block by block", fontsize=7.5)
    return figure


def _draw_time(ax: Axes, y: int, rows: pl.DataFrame, method: str) -> None:
    parts = (100 * rows["share"]).to_list()
    _stack(ax, y, parts, mark_of(method).colour, height=0.6, numbered=True)
    seconds, tps = rows["seconds"].sum(), rows["tps"][0]
    _note(ax, y, f"{seconds:.2f} s" + ("" if tps is None else f", {tps:.0f} tok/s"), INK)


def _method_rows(
    frame: pl.DataFrame,
    width: Width | None,
    *,
    row_height: float,
    draw: Callable[[Axes, int, pl.DataFrame, str], None],
) -> Figure:
    """Draw a panel per model and task with a row per method; `row_height` is in inches."""
    frame = in_order(frame, "block")
    keys = panel_keys(frame)
    counts = [panel_rows(frame, key)["method"].n_unique() for key in keys]
    if width == Width.COLUMN:
        grid = Grid(len(keys), 1, COLUMN)
    elif len(keys) == 1:
        grid = Grid(1, 1, 4.2 if width is None else PAGE)
    else:
        grid = Grid(len(keys), 2, PAGE / 2)
    most = [max(counts[i : i + grid.columns]) for i in range(0, len(keys), grid.columns)]
    heights = [row_height * (count + ROW_MARGIN) for count in most]
    figure, axes = panel_grid(grid, heights, head=0.25 + 0.5 * grid.rows)
    inches = 1.0 if width == Width.COLUMN else 1.35
    for i, (ax, key) in enumerate(zip(axes, keys, strict=True)):
        panel = panel_rows(frame, key)
        methods = panel["method"].unique(maintain_order=True).to_list()
        for y, method in enumerate(methods):
            draw(ax, y, panel.filter(pl.col("method") == method), method)
        _method_axis(ax, methods, most[i // grid.columns], inches)
        title_panel(ax, key, frame, left=0.2 + inches)
    return figure


def _note(ax: Axes, y: float, text: str, colour: str) -> None:
    """Write a note to the right of a row."""
    ax.annotate(
        text,
        (1.02, y),
        xycoords=ax.get_yaxis_transform(),
        va="center",
        fontsize=6.5,
        color=colour,
        annotation_clip=False,
    )


def _stack(
    ax: Axes, y: float, parts: list[float], colour: str, *, height: float, numbered: bool = False
) -> None:
    """Draw bars end to end, every other one lighter, so that blocks differ in greyscale too."""
    left = 0.0
    for i, part in enumerate(parts):
        shade = mixed(colour, 255, 0.35) if i % 2 else colour
        ax.barh(y, part, left=left, height=height, color=shade, edgecolor="white", linewidth=0.4)
        if numbered and part > 6:
            ax.text(
                left + part / 2,
                y,
                str(i + 1),
                ha="center",
                va="center",
                fontsize=5.5,
                color="white",
                gid=ON_AREA,
            )
        left += part


def _method_axis(ax: Axes, methods: list[str], rows: int, inches: float) -> None:
    """Set up the axes and method labels of a panel with room for a number of rows."""
    labels = []
    for method in methods:  # on two lines if one is too narrow
        first, *rest = wrapped(method_label(method), inches, 7)
        labels.append("\n".join([first, fitted(" ".join(rest), inches, 7)]) if rest else first)
    ax.set_yticks(range(len(methods)), labels=labels)
    ax.tick_params(axis="y", length=0)
    ax.set_ylim(rows + ROW_MARGIN - 0.6, -0.6)
    ax.axvline(100, color=QUIET, linewidth=0.5, linestyle=":")
    longest = max(bar.get_x() + bar.get_width() for bar in ax.patches if isinstance(bar, Rectangle))
    ax.set_xlim(0, max(100, longest))  # some methods spend more steps than the budget
    ax.set_xticks([0, 50, 100], labels=["0", "50", "100%"])
