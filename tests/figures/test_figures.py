"""Figures are tested by their artists; no images are compared."""

import re

import matplotlib as mpl
import numpy as np
import polars as pl
import pytest
from frames import (
    CASES,
    SLOW,
    WIDTHS,
    check_figure,
    make_outcomes,
    make_phases,
    make_settling,
    make_signals,
)
from matplotlib.collections import PathCollection
from matplotlib.colors import to_rgb
from matplotlib.text import Text

from c4.analysis import method_totals, stabilization_summary
from c4.analysis.blocks import block_usage, time_shares
from c4.analysis.colours import MARKS, mark_of, shade_of
from c4.analysis.paper_names import METHOD_LABELS, in_order, method_label, task_label
from c4.analysis.sweeps import h_sweep
from c4.errors import ConfigError
from c4.figures import (
    FIGURES,
    Width,
    blocks_figure,
    frontier_figure,
    gates_figure,
    h_sweep_figure,
    phase_diagram,
    stabilization_figure,
    time_share_figure,
    totals_figure,
)
from c4.figures.dark import adapt_to_ground
from c4.figures.gallery import save_figure
from c4.figures.phase import CROWDED, NEVER, spread
from c4.figures.style import draw_apart, read_style, styled, use_style
from c4.gates.registry import GATES
from c4.record.methods import METHODS
from c4.tasks import TASKS

NO_BENCH = pl.DataFrame(schema={"cohort": pl.String, "method": pl.String, "tps": pl.Float64})


@pytest.fixture(params=WIDTHS)
def width(request):
    return request.param


DRAWN = {
    "stabilization": lambda phases, _: make_settling(phases),
    "phase-diagram": lambda phases, _: phases,
    "blocks": lambda _, outcomes: block_usage(outcomes, method_totals(outcomes)),
    "totals": lambda _, outcomes: block_usage(outcomes, method_totals(outcomes)),
    "time-share": lambda _, outcomes: time_shares(outcomes, NO_BENCH),
    "frontier": lambda _, outcomes: method_totals(outcomes),
}
VARIANT = "c4,cvee.tau=0.5,p_min=1"
LARGE = "thirteen tasks"
IN_CI = {("stabilization", LARGE), ("phase-diagram", LARGE), ("totals", LARGE)}
IN_CI |= {(name, case) for name in DRAWN for case in CASES if case != LARGE}
EVERY_WIDTH = [
    pytest.param(name, case, width, marks=() if i % 3 == j and (name, case) in IN_CI else SLOW)
    for name in DRAWN
    for i, case in enumerate(CASES)
    for j, width in enumerate((None, *Width))
]
"""Every case at every width; CI draws each at one of them, and the largest in three figures."""


@pytest.mark.parametrize(("name", "case", "width"), EVERY_WIDTH)
def test_figures_of_many_panels_are_sound_at_every_width(name, case, width):
    phases = make_phases(**CASES[case], gates=("prophet", "sched", "cvee"))
    outcomes = make_outcomes(**CASES[case], methods=("baseline", "cvee", "c4", VARIANT))
    check_figure(FIGURES[name].draw(DRAWN[name](phases, outcomes), width), width)


LONG = "my_gates.py:AGateWhoseAuthorLikesToSayWhatItDoes"
OWN = (*("prophet", "sched", "cvee", "cvee,tau=0.9,p_min=5", "cvee (calibration.json)"), LONG)
OWN += (f"{LONG},nats=0.4", "my_gates.py:Calm", "my_gates.py:Bold")


@pytest.mark.parametrize("name", DRAWN)
def test_figures_have_room_for_many_gates_and_long_names(name, width):
    models = ["tiny", "my_$model$ 100%_&#~^{x} that has a name"]
    case = {"models": models, "tasks": ["truthfulqa", "gsmhard"], "n": 2, "never": 0.5}
    phases = make_phases(**case, gates=OWN, fires=0.7)
    outcomes = make_outcomes(**case, methods=("baseline", *OWN))
    check_figure(FIGURES[name].draw(DRAWN[name](phases, outcomes), width), width)


def test_tasks_of_users_own_keep_their_names_apart(width, monkeypatch):
    names = [f"{word}_is_the_beginning_of_a_long_name" for word in ("this", "that", "other")]
    monkeypatch.setattr(
        "c4.analysis.paper_names.TASK_LABELS", dict(zip(TASKS, names, strict=False))
    )
    phases = make_phases(["tiny"], list(TASKS)[:3], 2)
    for figure in (
        phase_diagram(phases, width),
        stabilization_figure(make_settling(phases), width),
    ):
        check_figure(figure, width)
        printed = " ".join(text.get_text() for text in figure.findobj(match=is_text))
        assert all(name[:4] in printed for name in names)


def test_every_method_of_a_figure_has_a_look_of_its_own():
    many = [*OWN, "cvee,tau=0.8", "cvee,tau=0.95", "cvee (other.json)", "baseline", "c4", "c4,H=2"]
    many += [f"my_gates:Gate{i}" for i in range(6)]
    for shaded in (True, False):
        assert len(set(draw_apart(many, shaded=shaded).values())) == len(many)
    assert draw_apart(["cvee"])["cvee"] == draw_apart(many)["cvee"]


def test_bars_are_equally_thick_in_all_panels(width):
    outcomes = make_outcomes(["tiny"], ["mmlu", "gsm8k", "math"], 2, ("baseline", "c4", "cvee"))
    some = outcomes.filter((pl.col("task") != "gsm8k") | (pl.col("method") == "baseline"))
    some = some.filter((pl.col("task") != "math") | (pl.col("method") != "c4"))
    figure = check_figure(time_share_figure(time_shares(some, NO_BENCH), width), width)
    thick = [ax.patches[0].get_window_extent().height for ax in figure.axes]
    assert thick == pytest.approx([thick[0]] * 3, rel=0.02)


def test_trajectories_that_no_gate_stops_do_not_cover_each_other():
    phases = make_phases(["tiny"], ["math"], 5, fires=0.0)
    phases = phases.with_columns(stabilization=0.98)
    (ax,) = phase_diagram(phases).axes
    for gate in ("prophet", "cvee"):
        (marks,) = [m for m in ax.collections if m.get_label() == gate and len(m.get_offsets())]
        places = marks.get_offsets()
        assert len(np.unique(places, axis=0)) == 5
        assert (places[:, 1] >= places[:, 0]).all()


def test_the_sweep_of_several_models_is_sound_at_every_width(width):
    methods = ("baseline", "c4", "c4,H=0", "c4,H=inf")
    models = ["tiny", "GSAI-ML--LLaDA-8B-Instruct"]
    outcomes = make_outcomes(models, ["mmlu", "truthfulqa", "humaneval"], 3, methods)
    sweep = h_sweep(outcomes, method_totals(outcomes))
    figure = check_figure(h_sweep_figure(sweep, width), width)
    assert len(figure.axes) == 3


def test_a_variant_is_hollow_beside_its_method():
    totals = method_totals(make_outcomes(["tiny"], ["gsm8k"], 3, ("baseline", "c4", VARIANT)))
    figure = frontier_figure(totals)
    fills = {line.get_label(): line.get_fillstyle() for line in figure.axes[0].lines}
    assert (fills["c4"], fills[VARIANT]) == ("full", "none")
    (legend,) = figure.legends
    assert [line.get_fillstyle() for line in legend.get_lines()[:3]] == ["full", "full", "none"]


@pytest.fixture(scope="module", params=[case for case in CASES if case != LARGE])
def phases(request):
    return make_phases(**CASES[request.param])


@pytest.fixture(scope="module")
def diagram(phases):
    return phase_diagram(phases)


@pytest.fixture(scope="module", params=["plain", "two models, long names"])
def outcomes(request):
    return make_outcomes(**CASES[request.param])


def panels(frame):
    return frame.select("model", "task").unique().height


def by_panel(figure, frame):
    """Every panel with its rows, in the order in which panels are drawn."""
    keys = in_order(frame.select("model", "task").unique()).rows()
    rows = [frame.filter((pl.col("model") == m) & (pl.col("task") == t)) for m, t in keys]
    return zip(figure.axes, rows, strict=True)


def legend_of(figure):
    return [text.get_text() for legend in figure.legends for text in legend.get_texts()]


def test_the_phase_diagram_draws_every_point_on_its_side_of_the_diagonal(phases, diagram):
    assert len(diagram.axes) == panels(phases)
    for ax, rows in by_panel(diagram, phases):
        for gate in ("prophet", "cvee"):
            found = [m.get_offsets() for m in ax.collections if m.get_label() == gate]
            points = np.vstack(found)
            wanted = rows.filter(pl.col("gate") == gate).with_columns(
                pl.col("stabilization").fill_null(NEVER)
            )
            expected = np.array(wanted.select("stabilization", "exit").rows())
            places = {True: wanted["fired"].to_numpy(), False: ~wanted["fired"].to_numpy()}
            drawn_first = np.vstack([expected[places[fired]] for fired in (True, False)])
            assert np.abs(points - drawn_first).max() <= CROWDED
            below = (points[:, 1] < points[:, 0]).sum()
            assert below == wanted["premature"].sum() + wanted["premature"].null_count()
            assert (points[:, 0] <= ax.get_xlim()[1]).all()


def test_every_panel_prints_how_often_each_gate_stopped_and_how_often_too_early(phases, diagram):
    for ax, rows in by_panel(diagram, phases):
        printed = [text.get_text().strip() for text in set(ax.findobj(match=is_text))]
        never = rows.unique("trajectory")["stabilization"].null_count()
        if never == rows["trajectory"].n_unique():
            continue
        judged = rows.filter(pl.col("fired") & pl.col("stabilization").is_not_null())
        counts = {gate: judged.filter(gate=gate)["premature"] for gate in rows["gate"].unique()}
        wanted = [
            f"{early.mean():.0%} of {len(early)}" if len(early) else "never stops"
            for early in counts.values()
        ]
        told = [text for text in printed if re.fullmatch(r"\d+% of \d+|never stops", text)]
        assert sorted(told) == sorted(wanted)
        assert f"premature exits (n={rows['trajectory'].n_unique()}):" in printed
        assert (f"({never} never settle)" in printed) == (never > 0)


def test_where_no_answer_settles_no_exit_is_called_premature():
    phases = make_phases(["tiny"], ["math"], 5, never=1.0)
    (ax,) = phase_diagram(phases).axes
    printed = [text.get_text().strip() for text in set(ax.findobj(match=is_text))]
    assert "no answer settles (n=5):" in printed
    assert printed.count("stops 5") == 2
    assert not any("%" in text for text in printed)


def test_panels_of_the_calibration_pool_say_so():
    phases = make_phases(["tiny"], ["math"], 3).with_columns(pool=True)
    (ax,) = phase_diagram(phases).axes
    printed = [text.get_text() for text in ax.findobj(match=is_text)]
    assert "premature exits (pool n=3):" in printed
    dots = stabilization_figure(make_settling(phases)).axes[1]
    assert [tick.get_text() for tick in dots.get_yticklabels()] == ["MATH, pool n=3"]


def test_both_halves_of_a_phase_diagram_are_named_behind_the_marks():
    figure = phase_diagram(make_phases(["tiny"], ["math"], 12, never=0.2))
    figure.canvas.draw()
    (ax,) = figure.axes
    words = {text.get_text(): text for text in ax.texts}
    marks = [marks for marks in ax.collections if isinstance(marks, PathCollection)]
    for half, above in (("safe", True), ("premature", False)):
        x, y = words[half].get_position()
        assert (y > x) == above
        assert words[half].get_zorder() < min(mark.get_zorder() for mark in marks)
    assert [tick.get_text() for tick in ax.get_xticklabels()] == ["0", ".5", "1", "never"]


def test_gates_that_never_stop_are_drawn_one_inside_the_other():
    phases = make_phases(["tiny"], ["mmlu"], 3, fires=0.0, gates=("prophet", "sched", "cvee"))
    (ax,) = phase_diagram(phases).axes
    marks = [m for m in ax.collections if isinstance(m, PathCollection) and len(m.get_offsets())]
    assert [m.get_label() for m in marks] == ["prophet", "sched", "cvee"]
    sizes = [m.get_sizes()[0] for m in marks]
    assert sizes == sorted(set(sizes), reverse=True)


def is_text(artist):
    return isinstance(artist, Text) and bool(artist.get_text())


def test_marks_of_one_trajectory_are_joined_and_hollow_where_a_gate_never_stopped(phases, diagram):
    lines = [c for ax in diagram.axes for c in ax.collections if hasattr(c, "get_segments")]
    assert sum(len(c.get_segments()) for c in lines) == phases.height // 2
    hollow = sum(
        len(marks.get_offsets())
        for ax in diagram.axes
        for marks in ax.collections
        if marks.get_label() in ("prophet", "cvee") and not len(marks.get_facecolor())
    )
    assert hollow == phases.filter(~pl.col("fired")).height


def test_the_stabilization_curve_ends_at_the_share_that_settles(phases):
    settling = make_settling(phases)
    figure = stabilization_figure(settling)
    by_model = settling.sort("model").group_by("model", maintain_order=True)
    for ax, (_, rows) in zip(figure.axes[::2], by_model, strict=True):
        for (task,), cohort in rows.group_by("task"):
            (line,) = [curve for curve in ax.lines if curve.get_label() == task]
            settled = 1 - cohort["stabilization"].null_count() / cohort.height
            assert line.get_ydata()[-1] == pytest.approx(settled)
            progress = sorted(cohort["stabilization"].drop_nulls())
            assert line.get_xdata().tolist() == [0, *progress, 1]
        colours = [line.get_color() for line in ax.lines if line.get_label() in rows["task"]]
        assert len(set(colours)) == len(colours)
    summary = stabilization_summary(settling).filter(pl.col("share") == 0.9)
    ticks = [t.get_text() for ax in figure.axes[1::2] for t in ax.get_yticklabels()]
    assert ticks == [f"{task_label(row['task'])}, n={row['n']}" for row in summary.to_dicts()]
    notes = [text.get_text() for ax in figure.axes[1::2] for text in ax.texts]
    wanted = ["never" if s is None else f"{s:.2f}" for s in summary["s_p"]]
    assert sorted(n for n in notes if n != "$s_{0.9}$") == sorted(wanted)


def test_blocks_have_a_line_for_every_method(outcomes):
    blocks = block_usage(outcomes, method_totals(outcomes))
    figure = blocks_figure(blocks)
    assert len(figure.axes) == panels(outcomes)
    assert legend_of(figure) == [method_label(m) for m in ("baseline", "cvee", "c4")]
    for ax in figure.axes:
        drawn = {line.get_label(): line.get_ydata() for line in ax.lines}
        count = len(drawn["baseline"])
        assert all(line.get_xdata().tolist() == [*range(1, count + 1)] for line in ax.lines)
        assert (drawn["baseline"] == 100).all()
        assert drawn["cvee"][-1] == 0


def test_total_bars_add_up_to_the_steps_and_losses_are_marked(outcomes):
    totals = method_totals(outcomes)
    figure = totals_figure(block_usage(outcomes, totals))
    widths = sum(
        bar.get_width() for ax in figure.axes for bar in ax.patches if bar.get_height() > 0.4
    )
    assert widths == pytest.approx((100 * totals["steps"] / totals["budget"]).sum())
    marked = sum("(−" in text.get_text() for ax in figure.axes for text in ax.texts)
    assert marked == totals.filter(pl.col("drop") > 2).height


def test_time_shares_fill_the_whole_bar_and_show_no_speed_that_was_not_measured(outcomes):
    figure = time_share_figure(time_shares(outcomes, NO_BENCH))
    for ax in figure.axes:
        widths = sum(bar.get_width() for bar in ax.patches)
        assert widths == pytest.approx(300)
        assert not any("tok/s" in text.get_text() for text in ax.texts)


def test_the_frontier_has_a_point_for_every_method(outcomes):
    totals = method_totals(outcomes)
    figure = frontier_figure(totals)
    for ax, rows in by_panel(figure, totals):
        drawn = {line.get_label(): line.get_xydata() for line in ax.lines}
        for row in rows.iter_rows(named=True):
            place = [100 * row["steps"] / row["budget"], 100 * row["accuracy"]]
            assert drawn[row["method"]].ravel() == pytest.approx(place)


def test_methods_past_their_budget_are_drawn_whole():
    outcomes = make_outcomes(["tiny"], ["gsm8k"], 2, ("baseline", "wino")).with_columns(
        steps=pl.when(method="wino").then(2 * pl.col("steps")).otherwise("steps"),
        block_steps=pl.when(method="wino")
        .then(pl.col("block_steps").list.eval(2 * pl.element()))
        .otherwise("block_steps"),
    )
    totals = method_totals(outcomes)
    (ax,) = frontier_figure(totals).axes
    assert ax.get_xlim()[1] > 200
    (ax,) = totals_figure(block_usage(outcomes, totals)).axes
    assert ax.get_xlim()[1] == pytest.approx(200)


def test_methods_with_other_examples_say_how_many():
    outcomes = make_outcomes(["tiny"], ["gsm8k"], 4, ("baseline", "wino"))
    fewer = outcomes.filter((pl.col("method") == "baseline") | (pl.col("trajectory") < 42))
    for frame, said in ((outcomes, False), (fewer, True)):
        totals = method_totals(frame)
        for figure in (frontier_figure(totals), totals_figure(block_usage(frame, totals))):
            (ax,) = figure.axes
            texts = [ax.get_title(loc="right"), *(text.get_text() for text in ax.texts)]
            assert any("n=2" in text or "n from 2 to 4" in text for text in texts) == said


def test_the_h_sweep_is_relative_to_one_and_ends_in_infinity():
    methods = ("baseline", "c4", "c4,H=0", "c4,H=4", "c4,H=inf", "c4,tau=0.9")
    outcomes = make_outcomes(["tiny"], ["mmlu", "gsm8k"], 6, methods)
    sweep = h_sweep(outcomes, method_totals(outcomes))
    assert sweep.filter(pl.col("task") == "mmlu")["H"].to_list() == [None, 0, 1, 4]
    figure = h_sweep_figure(sweep)
    accuracy, steps, _ = figure.axes
    assert [t.get_text() for t in accuracy.get_xticklabels()] == ["0", "1", "4", "∞"]
    assert all(line.get_ydata()[1] == 0 for line in accuracy.lines)
    assert all(line.get_ydata()[1] == 100 for line in steps.lines)


def test_a_method_keeps_its_mark_whatever_its_settings_and_no_two_look_alike():
    assert mark_of("c4,H=2") == mark_of("c4")
    assert mark_of("my_gates:Calm") == mark_of("my_gates:Calm")
    assert len({(mark.colour, mark.marker) for mark in MARKS.values()}) == len(MARKS)


@pytest.mark.parametrize("name", sorted({*METHODS, *GATES}))
def test_every_method_and_gate_has_a_label_and_a_mark(name):
    assert name in METHOD_LABELS
    assert name in MARKS


def test_figures_leave_no_settings_behind():
    before = dict(mpl.rcParams) | {"backend": None}  # resolved when it is first looked at
    phase_diagram(make_phases(["tiny"], ["math"], 1))
    assert dict(mpl.rcParams) | {"backend": None} == before


def test_a_matplotlibrc_has_no_say(monkeypatch):
    monkeypatch.setitem(mpl.rcParams, "text.usetex", True)
    monkeypatch.setitem(mpl.rcParams, "axes.labelcolor", "red")

    @styled
    def settings():
        return mpl.rcParams["text.usetex"], mpl.rcParams["axes.labelcolor"]

    assert settings() == (False, "black")


NAMES = ["a$b$c", "$\\frac{", "\0\x1b[2J", "漢字", "a\nb", "%", "{}"]


def test_any_name_of_a_model_or_a_method_can_be_drawn(tmp_path):
    outcomes = make_outcomes(NAMES, ["gsm8k"], 1, ("baseline", "c4"))
    named = pl.when(pl.col("method") == "c4").then("model").otherwise("method")
    figure = frontier_figure(method_totals(outcomes.with_columns(method=named)))
    for form in ("png", "pdf", "svg"):
        save_figure(figure, tmp_path / f"figure.{form}")
        assert (tmp_path / f"figure.{form}").stat().st_size > 5_000


def test_marks_that_would_cover_each_other_are_spread_on_their_side():
    points = pl.DataFrame({"x": [0.5] * 6, "exit": [0.51] * 3 + [0.49] * 3, "fired": True})
    moved = spread(points)
    assert moved.select("x", "exit").n_unique() == 6
    assert ((moved["exit"] >= moved["x"]) == (points["exit"] >= points["x"])).all()
    still = spread(points.with_columns(fired=False))
    assert still.equals(points.with_columns(fired=False))


def test_a_setting_beside_its_gate_has_another_shade_of_its_colour():
    shades = [shade_of(label) for label in ("cvee", "cvee,tau=0.8", "cvee (calibration.json)")]
    assert len(set(shades)) == 3
    phases = make_phases(["tiny"], ["math"], 5, gates=("cvee", "cvee,tau=0.8"))
    assert legend_of(check_figure(phase_diagram(phases))) == [
        "CVEE",
        "CVEE, tau=0.8",
        "never stops",
    ]


def test_accuracies_say_how_many_answers_were_not_gradable():
    outcomes = make_outcomes(["tiny"], ["humaneval"], 6, ("baseline", "c4"))
    failed = pl.col("trajectory") == outcomes["trajectory"].min()
    outcomes = outcomes.with_columns(
        not_gradable=failed, correct=pl.when(~failed).then(pl.col("correct"))
    )
    totals = method_totals(outcomes)
    for figure in (frontier_figure(totals), totals_figure(block_usage(outcomes, totals))):
        printed = [text.get_text() for text in figure.findobj(match=is_text)]
        assert any("1 not gradable" in text for text in printed)


def test_a_style_is_the_user_s(tmp_path):
    phases = make_phases(["tiny"], ["mmlu", "math"], 3)
    (tmp_path / "mine.mplstyle").write_text("axes.linewidth: 2.5\nfigure.facecolor: ffeecc\n")
    with use_style(read_style(tmp_path / "mine.mplstyle")):
        figure = phase_diagram(phases)
        assert figure.axes[0].spines["left"].get_linewidth() == 2.5
    assert phase_diagram(phases).axes[0].spines["left"].get_linewidth() == 0.6


def test_larger_letters_of_a_style_have_room_too():
    style = {"legend.fontsize": "x-large", "axes.titlesize": 14, "text.parse_math": True}
    totals = method_totals(make_outcomes(["tiny"], ["gsm8k"], 3, ("baseline", "c4", *OWN)))
    with use_style(style):
        check_figure(frontier_figure(totals, Width.COLUMN), Width.COLUMN)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("text.usetex: True", "a style may not set text.usetex"),
        ("backend: agg", "a style may not set backend"),
        ("axes.linewidth: thick", "not a Matplotlib style"),
        ("no such setting", "not a Matplotlib style"),
    ],
)
def test_a_style_that_cannot_be_used_is_refused(tmp_path, text, message):
    (tmp_path / "bad.mplstyle").write_text(text)
    with pytest.raises(ConfigError) as refused:
        read_style(tmp_path / "bad.mplstyle")
    assert message in str(refused.value)


def brightness(colour):
    return np.mean(to_rgb(colour))


DARK = dict.fromkeys(("figure.facecolor", "axes.facecolor"), "#101010")


def test_a_dark_ground_swallows_no_text_no_mark_and_no_number_on_a_bar():
    phases = make_phases(["tiny"], ["math"], 3)
    shares = time_shares(make_outcomes(["tiny"], ["math"], 2), NO_BENCH)
    with use_style(DARK | {"text.color": "#eeeeee"}):
        figure, bars = phase_diagram(phases), time_share_figure(shares)
    for drawn in (figure, bars):
        adapt_to_ground(drawn)
    assert all(brightness(text.get_color()) > 0.25 for text in figure.findobj(match=is_text))
    for marks in figure.axes[0].collections:
        assert all(np.mean(colour[:3]) > 0.1 for colour in marks.get_facecolor())
    (ax,) = bars.axes
    assert min(brightness(bar.get_facecolor()) for bar in ax.patches) > 0.3
    numbers = [text for text in ax.texts if text.get_text().isdecimal()]
    assert max(brightness(text.get_color()) for text in numbers) < 0.1


def test_panels_keep_a_dark_ground_with_faint_grids_and_bright_lines():
    bright = dict.fromkeys(("axes.edgecolor", "xtick.color"), "#ffffff")
    with use_style(DARK | bright):
        figure = gates_figure(make_signals(["math"]))
        swept = stabilization_figure(make_settling(make_phases(["tiny"], ["math"], 3)))
    for drawn in (figure, swept):
        adapt_to_ground(drawn)
        for ax in drawn.axes:
            assert brightness(ax.get_facecolor()) < 0.1
            assert brightness(ax.spines["bottom"].get_edgecolor()) == 1
            assert brightness(ax.xaxis.get_ticklines()[0].get_markeredgecolor()) == 1
    course = figure.axes[0].lines[0]
    assert brightness(course.get_color()) > 0.8
    ticks = figure.axes[0].lines[1]
    assert brightness(ticks.get_markeredgecolor()) > 0.8
    assert brightness(swept.axes[1].get_xgridlines()[0].get_color()) < 0.4
