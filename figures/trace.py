"""One trajectory in four panels: answers, confidence, patience and gap."""

from collections.abc import Mapping, Sequence

import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from c4.analysis.colours import Mark, mark_of
from c4.analysis.notebook_frames import require_columns, require_one_trajectory
from c4.analysis.paper_names import method_label, model_label, task_label
from c4.analysis.traces import TRACE, stops_in
from c4.figures.fit import drawable, fitted, points, shorten, text_width, wrapped
from c4.figures.style import (
    COLUMN,
    FAINT,
    INK,
    PAGE,
    QUIET,
    Width,
    draw_apart,
    method_legend,
    new_figure,
    styled,
)

MOST_VALUES = 8
"""Maximum number of answers with a line of their own; earlier ones share the lowest line."""
MOST_LETTERS = 16


ASKING = ("tau_of", "threshold_of")
"""Columns that name the gates whose thresholds are drawn; by default c4's CVEE and Prophet."""


@styled
def trace_figure(trace: pl.DataFrame, width: Width | None = None) -> Figure:
    """Draw candidate, confidence, patience and gap of one trajectory, and the exits of gates.

    Columns: model, task, trajectory, step, budget, block, candidate, final, settled, confidence,
    tau, run, patience, gap, threshold, exits, correct; tau_of and threshold_of may be missing.
    Every further column is a signal and gets its own panel.
    """
    require_columns(trace, set(TRACE) - set(ASKING))
    require_one_trajectory(trace)
    first = trace.row(0, named=True)
    cvee, prophet = first.get("tau_of") or "cvee", first.get("threshold_of") or "prophet"
    moments = stops_in(trace)
    stopping = [gate for _, gates in moments for gate in gates]
    drawn = draw_apart([*dict.fromkeys([*stopping, cvee, prophet])], shaded=True)
    signals = [name for name in trace.columns if name not in TRACE]
    figure = new_figure(COLUMN if width == Width.COLUMN else PAGE, 5.0 + len(signals))
    answers, confidence, patience, gap, *more = figure.subplots(
        4 + len(signals), 1, sharex=True, height_ratios=[5, 3, 3, 3, *[3] * len(signals)]
    )
    room = figure.get_figwidth() - 0.45 - _draw_answers(answers, trace)
    asks = "asks" if width == Width.COLUMN else "asks for this"
    _draw_signal(confidence, trace, ("confidence", "tau"), drawn[cvee], f"{_short(cvee)} {asks}")
    confidence.set(ylabel="confidence", ylim=(0, 1.05))
    _draw_signal(patience, trace, ("run", "patience"), drawn[cvee], f"{_short(cvee)} {asks}")
    patience.set_ylabel("steps unchanged")
    _draw_signal(gap, trace, ("gap", "threshold"), drawn[prophet], f"{_short(prophet)} {asks}")
    gap.set(ylabel="gap (logits)", xlim=(0.5, trace.height + 0.5))
    for ax, signal in zip(more, signals, strict=True):
        ax.plot(trace["step"], trace[signal], color=INK, linewidth=1.1, marker=".", markersize=2)
        ax.set_ylabel(fitted(signal, 0.85, 7.5))
    panels = [answers, confidence, patience, gap, *more]
    panels[-1].set_xlabel("step")
    _draw_moments(panels, trace, moments, drawn)
    right = {True: "right", False: "wrong", None: "not graded"}[first["correct"]]
    title = (
        f"{task_label(first['task'])} on {model_label(first['model'])}, trajectory "
        f"{first['trajectory']}; the full decode's answer is {right}"
    )
    answers.set_title("\n".join(wrapped(title, room, points("axes.titlesize"))), pad=8)
    method_legend(figure, {gate: drawn[gate] for gate in stopping}, suffix=" stops")
    return figure


def _short(gate: str) -> str:
    """Name of a gate, shortened to fit beside a panel."""
    return fitted(method_label(gate), 0.75, 6.3)


def _draw_answers(ax: Axes, trace: pl.DataFrame) -> float:
    """Draw the steps at which each answer is read; return the width of the labels in inches."""
    values = trace["candidate"].drop_nulls().unique(maintain_order=True).to_list()
    final = next(iter(trace.filter("final")["candidate"]), None)
    others = [value for value in values if value != final][-(MOST_VALUES - 1) :]
    lines = ([final] if final is not None else []) + others[::-1]
    place = {value: y for y, value in enumerate(lines)}
    runs = trace.group_by(pl.col("candidate").rle_id().alias("run"), maintain_order=True).agg(
        pl.col("candidate").first(), first=pl.col("step").min(), last=pl.col("step").max()
    )
    for _, value, start, end in runs.drop_nulls("candidate").iter_rows():
        y = place.get(value, len(lines))
        colour = mark_of("cvee").colour if value == final else QUIET
        ax.barh(y, end - start + 1, left=start - 0.5, height=0.55, color=colour)
    labels = [drawable(shorten(value, MOST_LETTERS)) for value in lines]
    if len(values) > len(lines):
        labels.append(f"{len(values) - len(lines)} earlier")
    ax.set_yticks(range(len(labels)), labels=labels)
    ax.set(ylim=(max(len(labels), 1) - 0.5, -0.7), ylabel="answer read")
    return max((text_width(label, 7) for label in labels), default=0.0)


def _draw_signal(
    ax: Axes, trace: pl.DataFrame, columns: tuple[str, str], asking: Mark, words: str
) -> None:
    """Draw a signal and a gate's threshold for it, which is labelled at the right."""
    signal, bar = columns
    ax.plot(trace["step"], trace[signal], color=INK, linewidth=1.1, marker=".", markersize=2)
    ax.step(
        trace["step"],
        trace[bar],
        where="mid",
        color=asking.colour,
        linewidth=0.9,
        linestyle="--",
    )
    ax.annotate(
        words,
        (1.005, trace[bar][-1]),
        xycoords=ax.get_yaxis_transform(),
        color=asking.colour,
        fontsize=6.3,
        va="center",
        annotation_clip=False,
    )


def _draw_moments(
    axes: list[Axes],
    trace: pl.DataFrame,
    moments: Sequence[tuple[int, Sequence[str]]],
    drawn: Mapping[str, Mark],
) -> None:
    """Draw block edges, the settled region and the exits; stack the marks of exits at one step."""
    edges = trace.filter(pl.col("block") != pl.col("block").shift())["step"].to_list()
    stays = trace.filter("settled")["step"].to_list() if trace["final"].any() else []
    for ax in axes:
        for edge in edges:
            ax.axvline(edge - 0.5, color=FAINT, linewidth=0.7, zorder=0)
        if stays:
            ax.axvspan(stays[0] - 0.5, trace.height + 0.5, color="#eef5ea", linewidth=0, zorder=0)
    if stays:
        exits = [step for step, gates in moments if gates]
        span = trace.height + 1 - stays[0]
        places = [stays[0] - 0.5 + share * span for share in (0.5, 0.25, 0.75)]
        axes[0].text(
            max(places, key=lambda x: min((abs(x - step) for step in exits), default=0)),
            0.04,
            "settled",
            transform=axes[0].get_xaxis_transform(),
            ha="center",
            color="#3f7d2c",
        )
    for step, gates in moments:
        for i, gate in enumerate(gates):
            mark = drawn[gate]
            for ax in axes:
                ax.axvline(step, color=mark.colour, linewidth=1, zorder=2)
            axes[0].plot(
                step,
                1.0 - 0.09 * i,
                mark.marker,
                color=mark.colour,
                transform=axes[0].get_xaxis_transform(),
                clip_on=False,
                markersize=6,
            )
