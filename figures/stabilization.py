"""When answers settle: the curve of each cohort, and s_p per task with its interval."""

from collections import Counter

import numpy as np
import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from c4.analysis import stabilization_summary
from c4.analysis.colours import FAMILY_COLOURS, Mark, mixed
from c4.analysis.notebook_frames import as_settling
from c4.analysis.paper_names import FAMILY_LABELS, model_label, task_label
from c4.figures.fit import fitted, points
from c4.figures.style import (
    COLUMN,
    FAMILY_LINES,
    INK,
    PAGE,
    QUIET,
    TASK_MARKERS,
    Width,
    new_figure,
    put_legend,
    quiet_grid,
    sample,
    share_axis,
    styled,
)

SHARE = 0.9
MOST_NAMED = 4
"""Maximum number of tasks for which the legend lists tasks; beyond that it lists families."""


@styled
def stabilization_figure(settling: pl.DataFrame, width: Width | None = None) -> Figure:
    """Draw the share of settled answers over progress, and s_0.5 and s_0.9 per task.

    Columns: model, task, family, cohort, pool, trajectory, stabilization, first_appearance; or
    those of decisions from `replay`. Each model has two panels, side by side, or stacked if the
    figure is one column wide.
    """
    settling = as_settling(settling)
    models = settling["model"].unique(maintain_order=True).sort().to_list()
    summary = stabilization_summary(settling)
    most = max(summary.filter(pl.col("model") == m)["task"].n_unique() for m in models)
    height = max(2.2, 0.9 + 0.2 * most)
    if width == Width.COLUMN:
        figure = new_figure(COLUMN, 2 * height * len(models) + 0.5)
        axes = figure.subplots(2 * len(models), 1)
    else:
        figure = new_figure(PAGE, height * len(models) + 0.35)
        axes = figure.subplots(len(models), 2, squeeze=False, width_ratios=[1.15, 1])
    for (curves, dots), model in zip(axes.reshape(-1, 2), models, strict=True):
        rows = summary.filter(pl.col("model") == model)
        _draw_curves(curves, settling.filter(pl.col("model") == model), rows)
        _draw_dots(dots, rows)
        if len(models) > 1:
            room = COLUMN - (1.7 if width == Width.COLUMN else 0.8)
            curves.set_title(fitted(model_label(model), room, points("axes.titlesize")))
    _put_legend(figure, summary)
    return figure


def _draw_curves(ax: Axes, settling: pl.DataFrame, summary: pl.DataFrame) -> None:
    marks = _marks(summary)
    ax.axhline(SHARE, color=QUIET, linewidth=0.6, linestyle=":")
    ends = summary.filter(pl.col("share") == SHARE).iter_rows(named=True)
    for row in ends:
        cohort = settling.filter(pl.col("task") == row["task"])["stabilization"]
        reached = np.sort(cohort.drop_nulls().to_numpy())
        progress = np.concatenate([[0.0], reached, [1.0]])
        share = np.concatenate([[0], np.arange(1, len(reached) + 1), [len(reached)]]) / len(cohort)
        mark = marks[row["task"]]
        style = FAMILY_LINES[row["family"]]
        ax.step(
            progress, share, where="post", color=mark.colour, linestyle=style, label=row["task"]
        )
        for at in (0.25, 0.5, 0.75, SHARE):  # markers identify the task
            if share[-1] >= at:
                x = progress[np.searchsorted(share, at - 1e-9)]
                size = 5 if at == SHARE else 3.5
                ax.plot(x, at, mark.marker, color=mark.colour, markersize=size, zorder=4)
    ax.set(xlim=(0, 1.02), ylim=(0, 1.02), xlabel="progress of the decode (share of steps)")
    ax.set_ylabel("answers settled for good")
    share_axis(ax, "x")
    ax.set_yticks([0, 0.5, SHARE, 1.0], labels=["0", "50%", "90%", "100%"])
    quiet_grid(ax, "x")


def _draw_dots(ax: Axes, summary: pl.DataFrame) -> None:
    marks = _marks(summary)
    for y, (task, mark) in enumerate(marks.items()):
        half, most = summary.filter(pl.col("task") == task).sort("share").to_dicts()
        colour = mark.colour
        if most["low"] is not None:
            high = 1.0 if most["high"] is None else most["high"]
            ax.plot([most["low"], high], [y, y], color=colour, linewidth=2.2, alpha=0.35)
        if most["appeared"] is not None:
            ax.plot(most["appeared"], y, "|", color=INK, markersize=8, markeredgewidth=1)
        if half["s_p"] is not None:
            ax.plot(half["s_p"], y, mark.marker, color=colour, markersize=5, fillstyle="none")
        if most["s_p"] is not None:
            ax.plot(most["s_p"], y, mark.marker, color=colour, markersize=5.5)
        note = "never" if most["s_p"] is None else f"{most['s_p']:.2f}"
        ax.annotate(note, (1.05, y), color=INK, va="center", annotation_clip=False)
    place = ax.get_xaxis_transform()
    ax.text(1.05, 1.02, "$s_{0.9}$", transform=place, color=INK, parse_math=True)
    ax.set_yticks(range(len(marks)), labels=[_label(summary, task) for task in marks])
    ax.tick_params(axis="y", length=0)
    ax.set(xlim=(0, 1.02), ylim=(len(marks) - 0.5, -0.6), xlabel="progress of the decode")
    share_axis(ax, "x")
    quiet_grid(ax, "both")


def _label(summary: pl.DataFrame, task: str) -> str:
    """Label of a task's row: its name, its number of examples, and whether they are pool."""
    row = summary.filter(pl.col("task") == task).row(0, named=True)
    return f"{fitted(task_label(task), 1.0, 7)}, {'pool ' if row['pool'] else ''}n={row['n']}"


def _put_legend(figure: Figure, summary: pl.DataFrame) -> None:
    marks = _marks(summary)
    if len(marks) > MOST_NAMED:  # the second panel names the tasks
        handles = [
            sample(color=FAMILY_COLOURS[f], linestyle=FAMILY_LINES[f], label=FAMILY_LABELS[f])
            for f in FAMILY_COLOURS
            if f in summary["family"]
        ]
    else:
        families = dict(summary.select("task", "family").iter_rows())
        handles = [
            sample(
                color=mark.colour,
                linestyle=FAMILY_LINES[families[task]],
                marker=mark.marker,
                markersize=4,
                label=task_label(task),
            )
            for task, mark in marks.items()
        ]
    grey = {"color": QUIET, "linestyle": ""}
    handles += [
        sample(marker="o", fillstyle="none", label="half settled", **grey),
        sample(marker="o", label="90% settled, 95% interval", **grey),
        sample(marker="|", markersize=8, label="90% first shown", **grey | {"color": INK}),
    ]
    put_legend(figure, handles)


def _marks(summary: pl.DataFrame) -> dict[str, Mark]:
    """Give every task a marker and a shade of its family's colour, each lighter than the last."""
    marks, shades = {}, Counter[str]()
    counts = dict(summary.group_by("family").agg(pl.col("task").n_unique()).iter_rows())
    tasks = summary.select("task", "family").unique(maintain_order=True).iter_rows()
    for i, (task, family) in enumerate(tasks):
        share = min(0.35, 0.5 / max(1, counts[family] - 1)) * shades[family]
        shades[family] += 1
        colour = mixed(FAMILY_COLOURS[family], 255, share)
        marks[task] = Mark(colour, TASK_MARKERS[i % len(TASK_MARKERS)])
    return marks
