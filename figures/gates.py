"""Signals that gates use: gap, confidence and entropy over progress, and their values at exits."""

from collections.abc import Mapping

import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from c4.analysis.colours import Mark
from c4.analysis.notebook_frames import require_columns
from c4.analysis.paper_names import in_order
from c4.figures.style import (
    INK,
    PANEL,
    QUIET,
    Width,
    draw_apart,
    lay_out,
    method_legend,
    new_figure,
    panel_keys,
    panel_rows,
    sample,
    share_axis,
    styled,
    title_panel,
)

EXPLAINED = (
    sample(color=INK, linewidth=1, label="median decode"),
    sample(color=QUIET, alpha=0.25, linewidth=6, label="middle half of decodes"),
    sample(color=INK, marker="|", linestyle="", markersize=6, label="answer settles"),
)
"""Legend entries of the line, the band and the ticks."""
SIGNALS = {"gap": "gap (logits)", "confidence": "confidence", "entropy": "entropy (nats)"}


@styled
def gates_figure(signals: pl.DataFrame, width: Width | None = None) -> Figure:
    """Draw gap, confidence and entropy over progress, with the triggers of each gate.

    Columns: model, task, family, kind, gate, trajectory, progress, signal, value, low, high. Each
    model and task has a column of three panels; ticks at the bottom mark each s_j.
    """
    of_gates = ("kind", "gate", "trajectory", "progress", "signal", "value", "low", "high")
    require_columns(signals, (*PANEL, *of_gates))
    signals = in_order(signals.rename({"gate": "method"}))
    gates = signals["method"].drop_nulls().unique(maintain_order=True).to_list()
    keys = panel_keys(signals)
    layout = lay_out(len(keys), width)
    columns = layout.columns
    figure = new_figure(layout.width, layout.rows * 3.6 + 0.5)
    grid = figure.subplots(3 * layout.rows, columns, squeeze=False)
    drawn = draw_apart(gates, shaded=True)
    for i, key in enumerate(keys):
        panel = panel_rows(signals, key)
        axes = grid[3 * (i // columns) : 3 * (i // columns) + 3, i % columns]
        title_panel(axes[0], key, signals)
        for ax, signal in zip(axes, SIGNALS, strict=True):
            _draw_panel(ax, panel.filter(pl.col("signal") == signal), drawn)
            if i % columns == 0:
                ax.set_ylabel(SIGNALS[signal])
            if signal != "entropy":
                ax.tick_params(labelbottom=False)
    for spare in grid.flat:
        if not spare.has_data():
            spare.remove()
    figure.supxlabel("progress of the decode", fontsize=7.5)
    method_legend(figure, drawn, *EXPLAINED, suffix=" stops")
    return figure


def _draw_panel(ax: Axes, rows: pl.DataFrame, drawn: Mapping[str, Mark]) -> None:
    course = rows.filter(pl.col("kind") == "course")
    ax.fill_between(
        course["progress"], course["low"], course["high"], color=QUIET, alpha=0.25, linewidth=0
    )
    ax.plot(course["progress"], course["value"], color=INK, linewidth=1)
    settled = rows.filter(pl.col("kind") == "settled")["progress"]
    ax.plot(
        settled,
        [0.03] * len(settled),
        "|",
        transform=ax.get_xaxis_transform(),
        color=INK,
        markersize=6,
        markeredgewidth=0.6,
        label="settled",
    )
    for gate, mark in drawn.items():
        triggers = rows.filter((pl.col("kind") == "trigger") & (pl.col("method") == gate))
        ax.scatter(
            triggers["progress"],
            triggers["value"],
            s=13,
            marker=mark.marker,
            color=mark.colour,
            edgecolor="white",
            linewidth=0.25,
            alpha=0.8,
            zorder=3,
            label=gate,
        )
    ax.set_xlim(0, 1.03)
    ax.margins(y=0.12)
    share_axis(ax, "x")
