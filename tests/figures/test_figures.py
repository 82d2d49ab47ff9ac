"""Figures are tested by their artists; no images are compared."""

import matplotlib as mpl
import numpy as np
import polars as pl
import pytest
from frames import CASES, check_figure, make_outcomes, make_phases, make_settling

from c4.analysis import (
    block_usage,
    h_sweep,
    method_label,
    method_totals,
    stabilization_summary,
    time_shares,
)
from c4.figures import (
    blocks_figure,
    frontier_figure,
    h_sweep_figure,
    phase_diagram,
    stabilization_figure,
    time_share_figure,
    totals_figure,
)
from c4.figures._style import FAMILY_COLOURS, MARKS, mark_of

NO_BENCH = pl.DataFrame(schema={"cohort": pl.String, "method": pl.String, "tps": pl.Float64})


@pytest.fixture(params=CASES.values(), ids=CASES)
def case(request):
    return request.param


@pytest.fixture
def phases(case):
    return make_phases(**case)


@pytest.fixture
def settling(phases):
    return make_settling(phases)


@pytest.fixture
def outcomes(case):
    return make_outcomes(**case)


@pytest.fixture
def h_outcomes():
    methods = ("baseline", "c4", "c4,H=0", "c4,H=4", "c4,H=inf", "c4,tau=0.9")
    return make_outcomes(["tiny"], ["mmlu", "gsm8k"], 6, methods)


def panels(frame):
    return frame.select("model", "task").unique().height


def legend_of(figure):
    return [text.get_text() for legend in figure.legends for text in legend.get_texts()]


def test_the_phase_diagram_draws_every_point_on_its_side_of_the_diagonal(phases):
    figure = check_figure(phase_diagram(phases))
    assert len(figure.axes) == panels(phases)
    drawn = [
        np.asarray(marks.get_offsets())
        for ax in figure.axes
        for marks in ax.collections
        if marks.get_label() in ("prophet", "cvee")
    ]
    points = np.vstack(drawn)
    assert len(points) == phases.height
    assert (points[:, 1] < points[:, 0]).sum() == phases["premature"].sum() + unsettled(phases)


def unsettled(phases):
    """Points beyond the end that are no exits: nothing fired, nothing settled."""
    return phases.filter(pl.col("stabilization").is_null() & ~pl.col("premature")).height


def test_the_premature_share_is_printed_in_every_panel(phases):
    figure = check_figure(phase_diagram(phases))
    shares = phases.group_by("model", "task", "gate").agg(pl.col("premature").mean())
    printed = [text.get_text().strip() for ax in figure.axes for text in ax.findobj(match=is_text)]
    for share in shares["premature"]:
        assert f"{share:.0%}" in printed


def is_text(artist):
    return hasattr(artist, "get_text") and bool(artist.get_text())


def test_marks_of_one_trajectory_are_joined(phases):
    figure = check_figure(phase_diagram(phases))
    lines = [c for ax in figure.axes for c in ax.collections if hasattr(c, "get_segments")]
    assert sum(len(c.get_segments()) for c in lines) == phases.height // 2


def test_a_hollow_mark_is_a_gate_that_never_stopped(phases):
    figure = check_figure(phase_diagram(phases))
    hollow = sum(
        len(marks.get_offsets())
        for ax in figure.axes
        for marks in ax.collections
        if marks.get_label() in ("prophet", "cvee") and not len(marks.get_facecolor())
    )
    assert hollow == phases.filter(~pl.col("fired")).height


def test_the_stabilization_curve_ends_at_the_share_that_settles(settling):
    figure = check_figure(stabilization_figure(settling))
    models = settling["model"].n_unique()
    assert len(figure.axes) == 2 * models
    for ax, (_, rows) in zip(
        figure.axes[::2], settling.sort("model").group_by("model", maintain_order=True), strict=True
    ):
        for (task,), cohort in rows.group_by("task"):
            (line,) = [curve for curve in ax.lines if curve.get_label() == task]
            settled = 1 - cohort["stabilization"].null_count() / cohort.height
            assert line.get_ydata()[-1] == pytest.approx(settled)
            assert line.get_color() == FAMILY_COLOURS[cohort["family"][0]]


def test_s_p_is_printed_beside_every_task(settling):
    figure = check_figure(stabilization_figure(settling))
    summary = stabilization_summary(settling).filter(pl.col("share") == 0.9)
    notes = [text.get_text() for ax in figure.axes[1::2] for text in ax.texts]
    wanted = ["never" if s is None else f"{s:.2f}" for s in summary["s_p"]]
    assert sorted(n for n in notes if n != "$s_{0.9}$") == sorted(wanted)


def test_blocks_have_a_line_for_every_method(outcomes):
    blocks = block_usage(outcomes, method_totals(outcomes))
    figure = check_figure(blocks_figure(blocks))
    assert len(figure.axes) == panels(outcomes)
    assert legend_of(figure) == [method_label(m) for m in ("baseline", "cvee", "c4")]
    for ax in figure.axes:
        drawn = {line.get_label(): line.get_ydata() for line in ax.lines}
        assert (drawn["baseline"] == 100).all()
        assert drawn["cvee"][-1] == 0


def test_total_bars_add_up_to_the_steps_and_losses_are_marked(outcomes):
    totals = method_totals(outcomes)
    figure = check_figure(totals_figure(block_usage(outcomes, totals)))
    widths = sum(
        bar.get_width() for ax in figure.axes for bar in ax.patches if bar.get_height() > 0.4
    )
    assert widths == pytest.approx((100 * totals["steps"] / totals["budget"]).sum())
    marked = sum("(−" in text.get_text() for ax in figure.axes for text in ax.texts)
    assert marked == totals.filter(pl.col("drop") > 0.02).height


def test_time_shares_fill_the_whole_bar_and_show_no_speed_that_was_not_measured(outcomes):
    figure = check_figure(time_share_figure(time_shares(outcomes, NO_BENCH)))
    for ax in figure.axes:
        widths = sum(bar.get_width() for bar in ax.patches)
        assert widths == pytest.approx(300)
        assert not any("tok/s" in text.get_text() for text in ax.texts)


def test_the_frontier_has_a_point_for_every_method(outcomes):
    figure = check_figure(frontier_figure(method_totals(outcomes)))
    for ax in figure.axes:
        labels = [line.get_label() for line in ax.lines]
        assert {"baseline", "cvee", "c4"} <= set(labels)


def test_the_h_sweep_is_relative_to_one_and_ends_in_infinity(h_outcomes):
    sweep = h_sweep(h_outcomes, method_totals(h_outcomes))
    assert sweep.filter(pl.col("task") == "mmlu")["H"].to_list() == [None, 0, 1, 4]
    figure = check_figure(h_sweep_figure(sweep))
    accuracy, steps, _ = figure.axes
    assert [t.get_text() for t in accuracy.get_xticklabels()] == ["0", "1", "4", "∞"]
    assert all(line.get_ydata()[1] == 0 for line in accuracy.lines)
    assert all(line.get_ydata()[1] == 100 for line in steps.lines)


def test_a_method_keeps_its_mark_whatever_its_settings_and_no_two_look_alike():
    assert mark_of("c4,H=2") == mark_of("c4")
    assert mark_of("my_gates:Calm") == mark_of("my_gates:Calm")
    assert len({(mark.colour, mark.marker) for mark in MARKS.values()}) == len(MARKS)


def test_figures_leave_no_settings_behind(phases):
    before = dict(mpl.rcParams) | {"backend": None}  # resolved when it is first looked at
    phase_diagram(phases)
    assert dict(mpl.rcParams) | {"backend": None} == before
