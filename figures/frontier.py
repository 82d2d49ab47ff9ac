"""Accuracy against steps, and how both depend on H, the holes that CCTC tolerates."""

from collections.abc import Mapping

import numpy as np
import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from c4.analysis import TOLERANCE
from c4.analysis.colours import FAMILY_COLOURS, Mark
from c4.analysis.notebook_frames import require_columns
from c4.analysis.paper_names import in_order, model_label, task_label
from c4.figures.style import (
    COLUMN,
    FAINT,
    PAGE,
    PANEL,
    QUIET,
    TASK_MARKERS,
    Width,
    draw_apart,
    lay_out,
    method_legend,
    new_figure,
    panel_grid,
    panel_keys,
    panel_rows,
    put_legend,
    quiet_grid,
    sample,
    styled,
    title_panel,
)

EXPLAINED = (
    sample(color=QUIET, linewidth=0.8, label="Pareto front"),
    sample(color=FAINT, linewidth=5, label=f"at most {TOLERANCE:g} points lost"),
)
"""Legend entries of the line and the band."""


@styled
def frontier_figure(totals: pl.DataFrame, width: Width | None = None) -> Figure:
    """Draw accuracy against steps, a panel per task; a line joins the Pareto-optimal methods.

    Columns: model, task, family, method, n, not_gradable, steps, budget, accuracy. The band spans
    the tolerance below the baseline's accuracy. A panel notes unequal numbers of examples and
    answers that could not be graded.
    """
    numbers = ("n", "not_gradable", "steps", "budget", "accuracy")
    require_columns(totals, (*PANEL, "method", *numbers))
    totals = in_order(totals)
    keys = panel_keys(totals)
    methods = in_order(totals.select("method").unique())["method"].to_list()
    figure, axes = panel_grid(lay_out(len(keys), width), height=1.75)
    drawn = draw_apart(methods)
    for ax, key in zip(axes, keys, strict=True):
        panel = panel_rows(totals, key).filter(pl.col("accuracy").is_not_null())
        _draw_frontier(ax, panel, drawn)
        counts = panel["n"].unique().sort().to_list()
        notes = [f"n from {counts[0]} to {counts[-1]}"] if len(counts) > 1 else []
        if failed := max(panel["not_gradable"].to_list(), default=0):
            notes.append(f"up to {failed} not gradable")
        title_panel(ax, key, totals, beside="\n".join(notes))
    figure.supxlabel("steps (% of the budget)", fontsize=7.5)
    figure.supylabel("accuracy (%)", fontsize=7.5)
    method_legend(figure, drawn, *EXPLAINED)
    return figure


def _draw_frontier(ax: Axes, panel: pl.DataFrame, drawn: Mapping[str, Mark]) -> None:
    points = panel.with_columns(
        x=100 * pl.col("steps") / pl.col("budget"), y=100 * pl.col("accuracy")
    )
    baseline = points.filter(pl.col("method") == "baseline")["y"]
    if len(baseline):
        ax.axhspan(baseline[0] - TOLERANCE, baseline[0], color=FAINT, linewidth=0, zorder=0)
    front = points.sort("x", pl.col("y").neg())
    front = front.filter(pl.col("y") > pl.col("y").cum_max().shift(fill_value=-np.inf))
    ax.step(front["x"], front["y"], where="post", color=QUIET, linewidth=0.8, zorder=1)
    for method, x, y in points.select("method", "x", "y").iter_rows():
        mark = drawn[method]
        ax.plot(
            x,
            y,
            mark.marker,
            color=mark.colour,
            fillstyle=mark.fill,
            markersize=5.5,
            zorder=3,
            label=method,
        )
    # Some methods spend more steps than the budget.
    ax.set_xlim(0, 1.04 * max([100.0, *points["x"]]))
    ax.margins(y=0.2)
    low, high = ax.get_ylim()
    if high - low < 2 * TOLERANCE:
        middle = (low + high) / 2
        ax.set_ylim(middle - 2 * TOLERANCE, middle + 2 * TOLERANCE)
    ax.set_ylim(bottom=max(ax.get_ylim()[0], -TOLERANCE))
    quiet_grid(ax)


PANELS = {
    "accuracy": "accuracy, points from H=1",
    "steps": "steps, % of those at H=1",
    "confirmed": "tokens confirmed (%)",
}


ASIDE = 0.15
"""Width over which the marks of all tasks at one H are spread; values of H are 1 apart."""


@styled
def h_sweep_figure(sweep: pl.DataFrame, width: Width | None = None) -> Figure:
    """Draw accuracy and steps, relative to H = 1 of the same sweep, and confirmed tokens against H.

    Columns: model, task, family, H (null: unlimited), accuracy, steps, confirmed.
    """
    require_columns(sweep, (*PANEL, "H", "accuracy", "steps", "confirmed"))
    sweep = in_order(sweep)
    holes = sorted(sweep["H"].drop_nulls().unique().to_list())
    places = {hole: i for i, hole in enumerate(holes)} | {None: len(holes)}
    labels = [str(hole) for hole in holes] + (["∞"] if sweep["H"].null_count() else [])
    if width == Width.COLUMN:
        figure = new_figure(COLUMN, 5.0)
        axes = figure.subplots(len(PANELS), 1)
    else:
        figure = new_figure(PAGE, 2.4)
        axes = figure.subplots(1, len(PANELS))
    several = sweep["model"].n_unique() > 1
    keys = panel_keys(sweep)
    for i, (model, task, family) in enumerate(keys):
        rows = panel_rows(sweep, (model, task, family))
        rows = rows.with_columns(place=pl.col("H").replace_strict(places, return_dtype=pl.Int64))
        aside = ASIDE * (i - (len(keys) - 1) / 2) / len(keys)  # keep equal values visible
        name = f"{task_label(task)}, {model_label(model)}" if several else task_label(task)
        for ax, column in zip(axes, PANELS, strict=True):
            values = _relative(rows, column)
            ax.plot(
                rows.sort("place")["place"] + aside,
                values,
                color=FAMILY_COLOURS[family],
                marker=TASK_MARKERS[i % len(TASK_MARKERS)],
                markersize=4.5,
                label=name,
            )
    for ax, column in zip(axes, PANELS, strict=True):
        ax.set_title(PANELS[column], fontsize=7.5)
        ax.set_xticks(range(len(labels)), labels=labels)
        ax.set_xlabel("holes the core may cross, H")
        if 1 in places:
            ax.axvspan(places[1] - 0.3, places[1] + 0.3, color=FAINT, linewidth=0, zorder=0)
        quiet_grid(ax, "y")
    low, high = axes[0].get_ylim()  # a change of one point is noise and must not fill the panel
    axes[0].set_ylim(min(low, -2 * TOLERANCE), max(high, 2 * TOLERANCE))
    handles, _ = axes[0].get_legend_handles_labels()
    band = [sample(color=FAINT, linewidth=5, label="the paper's H")] if 1 in places else []
    put_legend(figure, [*handles, *band])
    return figure


def _relative(rows: pl.DataFrame, column: str) -> list[float | None]:
    """Values of a column sorted by H, relative to H = 1 except for `confirmed`."""
    values = rows.sort("place")[column]
    at_one = rows.filter(pl.col("H") == 1)[column]
    if column == "confirmed":
        return (100 * values).to_list()
    if not len(at_one) or at_one[0] is None:
        return [None] * len(values)
    if column == "steps":
        return (100 * values / at_one[0]).to_list()
    return (100 * (values - at_one[0])).to_list()
