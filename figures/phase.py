"""The phase diagram: exits of gates against stabilization of answers."""

from collections.abc import Mapping
from math import ceil

import numpy as np
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

from c4.analysis.colours import FAMILY_COLOURS, Mark, mark_of
from c4.analysis.notebook_frames import as_phases
from c4.analysis.paper_names import FAMILY_LABELS, in_order
from c4.figures.fit import text_width
from c4.figures.style import (
    ALARM,
    COLUMN,
    DANGER,
    INK,
    QUIET,
    Width,
    draw_apart,
    lay_out,
    method_legend,
    panel_grid,
    panel_keys,
    panel_rows,
    panel_title,
    sample,
    share_axis,
    styled,
)

SAFE = "#1b7837"
LINE = 9.3
"""Distance between the lines of text above a panel, in points."""
CROWDED, SPREAD = 0.03, 0.011
"""Distance within which marks cover each other, and the step by which each next one moves."""
NEVER = 1.26
"""x at which trajectories are drawn whose answer never settles, beyond the end of the decode."""
END = (1 + NEVER) / 2
"""x at which the two halves end and the strip of such trajectories begins."""
HALVES = {
    "safe": (SAFE, 0.13, [(0.3, 0.72), (0.2, 0.9), (0.17, 0.5), (0.45, 0.85)]),
    "premature": (ALARM, 0.27, [(0.66, 0.26), (0.74, 0.04), (0.52, 0.1), (0.76, 0.4)]),
}
"""Label of each half: its colour, half its width, and its possible positions."""


@styled
def phase_diagram(phases: pl.DataFrame, width: Width | None = None) -> Figure:
    """Draw exit progress against stabilization; exits below the diagonal are premature.

    Columns: model, task, family, trajectory, pool, gate, fired, exit, stabilization, premature; or
    those of decisions from `replay`. Each model and task has a panel; a faint line joins the marks
    of each trajectory.
    """
    phases = in_order(as_phases(phases).rename({"gate": "method"}), "trajectory")
    drawn = draw_apart(phases["method"].unique(maintain_order=True).to_list(), shaded=True)
    keys = panel_keys(phases)
    several = phases["model"].n_unique() > 1
    grid = lay_out(len(keys), width)
    right = NEVER + 0.1 if phases["stabilization"].null_count() else 1.08
    # Number of gates whose shares fit side by side above a panel.
    words = (f"100% of {phases['trajectory'].n_unique()}", "never stops")
    widest = max(text_width(f"{word} ", 6.5, "bold") for word in words)
    per_line = max(1, int((grid.inches - 0.35) / (0.14 + widest)))
    narrow = width == Width.COLUMN
    unsettled = phases["premature"].null_count() > 0
    lines = 1 + unsettled + ceil(len(drawn) / per_line) + several + narrow
    figure, axes = panel_grid(
        grid, height=min(COLUMN, grid.inches) - 0.1 + (0.16 if narrow else 0.14) * lines
    )
    for ax, key in zip(axes, keys, strict=True):
        panel = panel_rows(phases, key)
        _draw_panel(ax, panel, drawn, right)
        room = grid.inches - 0.35
        comma, taken = (
            (",\n", 0.05) if narrow else (", ", text_width(FAMILY_LABELS[key[2]], 7) + 0.1)
        )
        title = f"{panel_title(key, phases, room - taken, 7)}{comma}{FAMILY_LABELS[key[2]]}"
        pad = 4 + LINE * _print_counts(ax, panel, drawn, per_line)
        ax.set_title(title, color=FAMILY_COLOURS[key[2]], fontsize=7, pad=pad)
    figure.supxlabel("answer settles for good (progress)", fontsize=7.5)
    figure.supylabel("gate stops the decode (progress)", fontsize=7.5)
    hollow = sample(color=QUIET, marker="o", linestyle="", fillstyle="none", label="never stops")
    method_legend(figure, drawn, hollow)
    return figure


def _draw_panel(ax: Axes, panel: pl.DataFrame, drawn: Mapping[str, Mark], right: float) -> None:
    end = min(right, END)
    ax.fill_between([0, end], [0, end], color=DANGER, linewidth=0, zorder=0)
    ax.plot([0, 1], [0, 1], color=QUIET, linewidth=0.8, zorder=1)
    points = panel.with_columns(x=pl.col("stabilization").fill_null(NEVER))
    for word, (colour, reach, places) in HALVES.items():
        at = _emptiest(places, reach, points)
        # Behind the marks, since they may be anywhere.
        ax.text(*at, word, color=colour, alpha=0.7, fontsize=8, ha="center", zorder=0.5)
    ax.add_collection(_joins(points))
    points = spread(_fan_out(points))
    for i, (gate, mark) in enumerate(drawn.items()):
        rows = points.filter(pl.col("method") == gate)
        # Gates that never stop share a place at the top; nested sizes keep all of them visible.
        sizes = {True: 17, False: 12 * (len(drawn) - i)}
        for fired, size in sizes.items():
            some = rows.filter(pl.col("fired") == fired)
            ax.scatter(
                some["x"],
                some["exit"],
                s=size,
                marker=mark.marker,
                facecolor=mark.colour if fired else "none",
                edgecolor="white" if fired else mark.colour,
                linewidth=0.3 if fired else 0.7,
                alpha=0.85,
                label=gate,
                zorder=3,
            )
    ax.set(xlim=(-0.04, right), ylim=(-0.04, 1.08))
    ax.set_box_aspect(1)
    ax.set_anchor("N")  # centred panels would lose the room for their titles
    share_axis(ax, "x")
    share_axis(ax, "y")
    if right > NEVER:
        ax.axvline(END, color=QUIET, linewidth=0.5, linestyle=":")
        ax.set_xticks([0, 0.5, 1, NEVER], labels=["0", ".5", "1", "never"])


def _emptiest(
    places: list[tuple[float, float]], reach: float, points: pl.DataFrame
) -> tuple[float, float]:
    """Position at which a word covers the fewest marks."""
    x, y = points["x"].to_numpy(), points["exit"].to_numpy()
    covering = [((abs(x - a) < reach) & (abs(y - b - 0.03) < 0.07)).sum() for a, b in places]
    return places[int(np.argmin(covering))]


def _joins(points: pl.DataFrame) -> LineCollection:
    """Make a faint line through the marks of each trajectory."""
    spans = points.group_by("trajectory", maintain_order=True).agg(
        pl.col("x").first(), low=pl.col("exit").min(), high=pl.col("exit").max()
    )
    lines = [[(x, low), (x, high)] for _, x, low, high in spans.iter_rows()]
    return LineCollection(lines, colors=QUIET, linewidths=0.4, alpha=0.45, zorder=2)


def spread(points: pl.DataFrame) -> pl.DataFrame:
    """Move overlapping marks slightly apart, without moving any across the diagonal.

    Columns: x and exit, both shares of the decode, and fired. The first mark at a place does not
    move, and no mark moves further than `CROWDED`. Marks of gates that never stopped stay nested.
    """
    place = [*((pl.col(name) / CROWDED).round() for name in ("x", "exit")), "fired"]
    turn = pl.int_range(pl.len()).over(place)
    angle = turn * 2.4  # golden angle: every mark of a place gets its own direction
    step = (CROWDED / turn.max().over(place).clip(1).sqrt()).clip(upper_bound=SPREAD)
    reach = pl.when("fired").then(step * turn.sqrt()).otherwise(0.0)
    shifted = points.with_columns(dx=reach * angle.cos(), dy=reach * angle.sin())
    over = pl.col("exit") >= pl.col("x")
    there = (pl.col("exit") + pl.col("dy")) >= (pl.col("x") + pl.col("dx"))
    back = (pl.col("exit") - pl.col("dy")) >= (pl.col("x") - pl.col("dx"))
    sign = pl.when(over == there).then(1.0).when(over == back).then(-1.0).otherwise(0.0)
    return shifted.with_columns(
        x=pl.col("x") + sign * pl.col("dx"), exit=pl.col("exit") + sign * pl.col("dy")
    ).drop("dx", "dy")


def _fan_out(points: pl.DataFrame) -> pl.DataFrame:
    """Move trajectories that are never stopped slightly left of others at the same place.

    The marks of all gates on a trajectory move together, so they stay nested.
    """
    place = [(pl.col("x") / CROWDED).round(), "fired"]
    turn = pl.col("trajectory").rank("dense").over(place) - 1
    step = (CROWDED / turn.max().over(place).clip(1)).clip(upper_bound=SPREAD)
    return points.with_columns(
        x=pl.when("fired").then("x").otherwise(pl.col("x") - step * turn.cast(pl.Float64))
    )


def _print_counts(ax: Axes, panel: pl.DataFrame, gates: Mapping[str, Mark], per_line: int) -> int:
    """Print the share of premature exits of each gate above a panel; return the number of lines.

    The share is of a gate's exits, so a gate that never stops gets no credit. Exits of trajectories
    that never settle are left out, since they have no settling step to compare with.
    """
    settles = pl.col("premature").is_not_null()
    shares = {}
    counts = panel.group_by("method").agg(
        pl.col("premature").sum(),
        judged=(pl.col("fired") & settles).sum(),
        stopped=pl.col("fired").sum(),
    )
    for gate, premature, judged, stopped in counts.iter_rows():
        never = f"stops {stopped}" if stopped else "never stops"
        shares[gate] = f"{premature / judged:.0%} of {judged}" if judged else never
    shown = [gate for gate in gates if gate in shares]
    lines: list[Artist] = [_words(line, INK) for line in _headline(panel).splitlines()]
    for i in range(0, len(shown), per_line):
        words: list[Artist] = []
        for gate in shown[i : i + per_line]:
            mark, symbol = gates[gate], DrawingArea(6, 6, 0, 0)
            line = Line2D([3], [2.5], marker=mark.marker, color=mark.colour, markersize=4.2)
            symbol.add_artist(line)
            words += [symbol, _words(f"{shares[gate]} ", mark_of(gate).colour, bold=True)]
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
    box.set_in_layout(False)  # so that the title above it keeps its room
    ax.add_artist(box)
    return len(lines)


def _headline(panel: pl.DataFrame) -> str:
    """Heading of the shares above a panel, with the number of trajectories."""
    trajectories = panel.unique("trajectory")
    never = trajectories["premature"].null_count()
    total = f"{'pool ' if panel['pool'].all() else ''}n={trajectories.height}"
    if never == trajectories.height:
        return f"no answer settles ({total}):"
    return f"premature exits ({total}):" + f"\n({never} never settle)" * bool(never)


def _words(text: str, colour: str, *, bold: bool = False) -> TextArea:
    weight = "bold" if bold else "normal"
    return TextArea(text, textprops={"color": colour, "fontsize": 6.5, "fontweight": weight})
