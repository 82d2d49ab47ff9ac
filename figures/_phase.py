"""The phase diagram: where gates stop against where answers settle."""

import polars as pl
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.offsetbox import (
    AnchoredOffsetbox,
    DrawingArea,
    HPacker,
    TextArea,
    VPacker,
)

from c4.analysis import FAMILY_LABELS, in_order, method_label, model_label, task_label
from c4.figures._style import (
    ALARM,
    DANGER,
    FAMILY_COLOURS,
    INK,
    QUIET,
    best_columns,
    mark_of,
    method_legend,
    panel_grid,
    panel_width,
    sample,
    share_axis,
    styled,
)

PER_LINE = 4
"""Gates whose shares are printed side by side."""
NEVER = 1.09
"""Where a trajectory is drawn whose answer never settles: beyond the end."""


@styled
def phase_diagram(phases: pl.DataFrame) -> Figure:
    """Exit progress against stabilization; below the diagonal, the exit was premature.

    Columns: model, task, family, trajectory, gate, fired, exit, stabilization, premature. A panel
    for each model and task; marks of one trajectory are joined by a faint line.
    """
    phases = in_order(phases.rename({"gate": "method"}), "trajectory")
    gates = phases["method"].unique(maintain_order=True).to_list()
    keys = phases.select("model", "task", "family").unique(maintain_order=True).rows()
    several = phases["model"].n_unique() > 1
    columns = best_columns(len(keys))
    lines = 2 + len(gates) // PER_LINE + several
    figure, axes = panel_grid(
        len(keys), columns=columns, height=panel_width(columns) - 0.1 + 0.13 * lines
    )
    for ax, (model, task, family) in zip(axes, keys, strict=True):
        panel = phases.filter((pl.col("model") == model) & (pl.col("task") == task))
        _draw_panel(ax, panel, gates)
        title = f"{task_label(task)}, {FAMILY_LABELS[family]}"
        if several:
            title = f"{model_label(model)}\n{title}"
        pad = 4 + 8.5 * _print_shares(ax, panel, gates)
        ax.set_title(title, color=FAMILY_COLOURS[family], fontsize=7, pad=pad)
    figure.supxlabel("answer settles for good (progress)", fontsize=7.5)
    figure.supylabel("gate stops the decode (progress)", fontsize=7.5)
    hollow = sample(color=QUIET, marker="o", linestyle="", fillstyle="none", label="never stops")
    method_legend(figure, gates, [method_label(gate) for gate in gates], hollow)
    return figure


def _draw_panel(ax: Axes, panel: pl.DataFrame, gates: list[str]) -> None:
    ax.fill_between([0, NEVER + 0.06], [0, NEVER + 0.06], color=DANGER, linewidth=0, zorder=0)
    ax.plot([0, 1], [0, 1], color=QUIET, linewidth=0.8, zorder=1)
    ax.text(0.97, 0.03, "premature", transform=ax.transAxes, ha="right", color=ALARM, alpha=0.55)
    points = panel.with_columns(x=pl.col("stabilization").fill_null(NEVER))
    ax.add_collection(_joins(points))
    for gate in gates:
        rows = points.filter(pl.col("method") == gate)
        mark = mark_of(gate)
        for fired in (True, False):
            some = rows.filter(pl.col("fired") == fired)
            ax.scatter(
                some["x"],
                some["exit"],
                s=17,
                marker=mark.marker,
                facecolor=mark.colour if fired else "none",
                edgecolor="white" if fired else mark.colour,
                linewidth=0.3 if fired else 0.7,
                alpha=0.85,
                label=gate,
                zorder=3,
            )
    if panel["stabilization"].null_count():
        ax.axvline(1.04, color=QUIET, linewidth=0.5, linestyle=":")
    ax.set(xlim=(-0.04, NEVER + 0.06), ylim=(-0.04, 1.08))
    ax.set_box_aspect(1)
    share_axis(ax, "x")
    share_axis(ax, "y")
    if panel["stabilization"].null_count():
        ax.set_xticks([0, 0.5, NEVER], labels=["0", ".5", "never"])


def _joins(points: pl.DataFrame) -> LineCollection:
    """A faint line through the marks of each trajectory."""
    spans = points.group_by("trajectory").agg(
        pl.col("x").first(), low=pl.col("exit").min(), high=pl.col("exit").max()
    )
    lines = [[(x, low), (x, high)] for _, x, low, high in spans.iter_rows()]
    return LineCollection(lines, colors=QUIET, linewidths=0.4, alpha=0.45, zorder=2)


def _print_shares(ax: Axes, panel: pl.DataFrame, gates: list[str]) -> int:
    """Each gate's share of premature exits, between the panel and its title; lines it takes."""
    shares = dict(panel.group_by("method").agg(pl.col("premature").mean()).iter_rows())
    drawn = [gate for gate in gates if gate in shares]
    lines: list[Artist] = [_words(f"premature of {panel['trajectory'].n_unique()}:", INK)]
    for i in range(0, len(drawn), PER_LINE):
        words: list[Artist] = []
        for gate in drawn[i : i + PER_LINE]:
            share, colour = shares[gate], mark_of(gate).colour
            words += [_symbol(gate), _words(f"{share:.0%} ", colour, bold=share > 0)]
        lines.append(HPacker(children=words, pad=0, sep=2))
    box = AnchoredOffsetbox(
        "lower left",
        child=VPacker(children=lines, pad=0, sep=1.5),
        bbox_to_anchor=(0, 1.0),
        bbox_transform=ax.transAxes,
        borderpad=0,
        pad=0.1,
        frameon=False,
    )
    box.set_in_layout(False)  # the title above it keeps its room
    ax.add_artist(box)
    return len(lines)


def _words(text: str, colour: str, *, bold: bool = False) -> TextArea:
    weight = "bold" if bold else "normal"
    return TextArea(text, textprops={"color": colour, "fontsize": 6.5, "fontweight": weight})


def _symbol(gate: str) -> DrawingArea:
    """A gate's mark, as large as a letter."""
    area = DrawingArea(6, 6, 0, 0)
    mark = mark_of(gate)
    area.add_artist(Line2D([3], [2.5], marker=mark.marker, color=mark.colour, markersize=4.2))
    return area
