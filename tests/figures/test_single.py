"""Figures of single trajectories, and of what gates see."""

import io
import unicodedata

import polars as pl
import pytest
from frames import SLOW, STEPS, WIDTHS, check_figure, make_signals
from rich.console import Console

from c4.analysis.paper_names import method_label
from c4.analysis.traces import TEXTS, TRACE
from c4.figures import Width, gates_figure, text_figure, trace_figure
from c4.figures.text import terminal_texts


def make_trace(candidates, exits=None):
    """A trajectory of 24 steps in 4 blocks, with the candidates given, repeated to fill it."""
    values = (candidates * STEPS)[:STEPS] if len(candidates) < STEPS else candidates
    final = values[-1]
    settled = next((u for u in range(STEPS) if all(v == final for v in values[u:])), STEPS)
    rows = [
        {
            "model": "tiny",
            "task": "gsm8k",
            "trajectory": 41,
            "step": i + 1,
            "budget": STEPS,
            "block": i // 6,
            "candidate": value,
            "final": value is not None and value == final,
            "settled": final is not None and i >= settled,
            "confidence": None if i < 12 else 0.6 + i / 100,
            "tau": 0.7,
            "run": i % 5,
            "patience": 3.0,
            "gap": 8 - i / 6,
            "threshold": 8.0 if i < 8 else 5.0,
            "exits": (exits or {}).get(i + 1, ""),
            "correct": None,
        }
        for i, value in enumerate(values)
    ]
    return pl.DataFrame(rows, schema=TRACE)


TRACES = {
    "plain": make_trace(["7"] * 10 + ["12"] * 14, {4: "prophet", 20: "cvee"}),
    "nothing read": make_trace([None]),
    "nothing stops": make_trace(["7"]),
    "never twice the same": make_trace([str(i) for i in range(STEPS)], {1: "prophet,sched"}),
    "programs and formulas": make_trace(["def f(x):\n    return x ** 2 + 1", r"\frac{1}{2}$x$"]),
    "letters no font has": make_trace(["\x13苹果", "7"]),
}


@pytest.fixture(params=WIDTHS)
def width(request):
    return request.param


@pytest.mark.parametrize("trace", TRACES.values(), ids=TRACES)
def test_a_trace_has_four_panels_and_a_line_where_each_gate_stops(trace, width):
    figure = check_figure(trace_figure(trace, width))
    assert len(figure.axes) == 4
    stops = [gate for exits in trace["exits"] for gate in exits.split(",") if gate]
    assert len(figure.legends[0].get_texts() if figure.legends else []) == len(stops)
    answers = figure.axes[0]
    bars = [bar for bar in answers.patches if bar.get_height() == pytest.approx(0.55)]
    read = trace.drop_nulls("candidate").height
    assert sum(bar.get_width() for bar in bars) == pytest.approx(read)


def test_no_exit_crosses_the_word_that_names_the_settled_steps():
    figure = check_figure(trace_figure(make_trace(["7"] * 4 + ["12"] * 20, {14: "cvee"})))
    answers = figure.axes[0]
    (word,) = [text for text in answers.texts if text.get_text() == "settled"]
    box = word.get_window_extent()
    x, _ = answers.transData.transform((14, 0))
    assert not box.x0 <= x <= box.x1


def test_settings_of_one_gate_stop_a_trace_as_themselves(width):
    labels = ["prophet", "cvee", "cvee,tau=0.9,p_min=5", "cvee (calibration.json)", "a.py:B,x=1"]
    exits = {4: ",".join(labels[:3]), 9: labels[3], 12: labels[4]}
    trace = make_trace(["7"], exits).with_columns(tau_of=pl.lit(labels[2]))
    figure = check_figure(trace_figure(trace, width))
    told = [text.get_text() for text in figure.legends[0].get_texts()]
    assert told == [f"{method_label(label)} stops" for label in labels]
    asks = [text.get_text() for text in figure.axes[1].texts]
    assert asks[0].startswith("CVEE, t…_min=5 asks")
    marks = [line for line in figure.axes[0].lines if len(line.get_xdata()) == 1]
    places = {(line.get_xdata()[0], line.get_ydata()[0]) for line in marks}
    assert len(places) == len({(line.get_marker(), line.get_color()) for line in marks}) == 5


def make_texts(buffers):
    """Buffers by method: pieces with a mark, `~` for filled and `!` for the answer."""
    rows = []
    for method, (fired, correct, pieces) in buffers.items():
        answers = [p.lstrip("~!") for p in pieces if "!" in p[:2]]
        for position, piece in enumerate(pieces):
            rows.append(
                {
                    "model": "tiny",
                    "task": "gsm8k",
                    "trajectory": 41,
                    "method": method,
                    "step": 9,
                    "budget": STEPS,
                    "fired": fired,
                    "position": position,
                    "piece": piece.lstrip("~!"),
                    "filled": "~" in piece[:2],
                    "in_answer": "!" in piece[:2],
                    "answer": answers[0] if answers else None,
                    "correct": correct,
                    "target": "12",
                }
            )
    return pl.DataFrame(rows, schema=TEXTS)


@pytest.fixture
def texts():
    return make_texts(
        {
            "baseline": (False, True, ["So ", "it ", "is ", "!12", "."]),
            "prophet": (True, False, ["So ", "~it ", "~is", "~ ", "~!7", "~."]),
            "cvee": (False, None, [""]),
        }
    )


def test_the_text_marks_what_was_filled_and_boxes_the_answer(texts, width):
    figure = check_figure(text_figure(texts, width))
    (ax,) = figure.axes
    grey = [p for p in ax.patches if p.get_fill() and p.get_facecolor()[:3] != (1, 1, 1)]
    assert len(grey) == 5 + 1  # and one in the key
    assert len([p for p in ax.patches if not p.get_fill()]) == 2 + 1
    written = " ".join(text.get_text() for text in ax.texts)
    assert (
        "Prophet stops at step 9 of 24: answer 7 (wrong); 5 of 6 tokens filled by force" in written
    )
    assert "Baseline runs to step 9: answer 12 (right)" in written
    assert "CVEE never stops; runs to step 9: no answer (not graded)" in written


def test_verdicts_of_gates_with_long_names_stay_on_the_page():
    name = "my_gates.py:WWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWW,nats=0.4"
    texts = make_texts({name: (True, True, ["!12"])})
    check_figure(text_figure(texts, Width.COLUMN))


@pytest.mark.parametrize(
    ("width", "cut"), [pytest.param(None, 54, marks=SLOW), (Width.PAGE, 54), (Width.COLUMN, 57)]
)
def test_long_and_strange_texts_stay_on_the_page(width, cut):
    pieces = ["word " * 60, "~def f():\n\treturn 1\n", "苹果\x13", "$x^2$", "line\n" * 80]
    figure = text_figure(make_texts({"baseline": (False, True, pieces)}), width)
    figure.canvas.draw()
    written = [text.get_text() for text in figure.axes[0].texts if len(text.get_text()) == 1]
    assert "".join(written).endswith(f"…cuthere;{cut}morelines")
    width, height = figure.canvas.get_width_height()
    for text in figure.axes[0].texts:
        box = text.get_window_extent()
        assert box.x0 >= 0
        assert box.x1 <= width
        assert box.y0 >= 0
        assert box.y1 <= height


def test_a_terminal_shows_the_same_in_signs_and_colours(texts):
    plain, coloured = io.StringIO(), io.StringIO()
    Console(file=plain, width=120).print(terminal_texts(texts))
    Console(file=coloured, width=120, force_terminal=True).print(terminal_texts(texts))
    assert "So it is «12»." in plain.getvalue()
    assert "So ‹it is ›«‹7›»‹.›" in plain.getvalue()
    assert "\x1b[" in coloured.getvalue()


def test_a_terminal_is_not_steered_by_what_a_model_wrote():
    pieces = ["\x1b]0;owned\x07", "~\x1b[2J\r\x9b31m", "!7\x1b[8m", "\u202e", "a\tb\n"]
    shown = io.StringIO()
    texts = make_texts({"baseline": (False, False, pieces)})
    Console(file=shown, width=120).print(terminal_texts(texts))
    controls = [c for c in shown.getvalue() if unicodedata.category(c)[0] == "C" and c != "\n"]
    assert controls == []
    assert r"answer 7\x1b[8m" in shown.getvalue()
    written = r"\x1b]0;owned\x07‹\x1b[2J\r\x9b31m›«7\x1b[8m»\u202ea  b"
    assert written in shown.getvalue()


@pytest.mark.parametrize(
    "tasks",
    [["math"], ["mmlu", "piqa", "math", "svamp", "humaneval"]],
)
def test_gates_have_three_panels_for_every_task(tasks, width):
    signals = make_signals(tasks)
    figure = check_figure(gates_figure(signals, width))
    assert len(figure.axes) == 3 * len(tasks)
    triggers = [
        tuple(point)
        for ax in figure.axes
        for marks in ax.collections
        if marks.get_label() in ("prophet", "cvee")
        for point in marks.get_offsets()
    ]
    expected = signals.filter(pl.col("kind") == "trigger").select("progress", "value")
    assert sorted(triggers) == sorted(expected.rows())
    course = signals.filter(kind="course", signal="gap", task=tasks[0])
    expected = course.select("progress", "value").to_numpy()
    assert figure.axes[0].lines[0].get_xydata().tolist() == expected.tolist()


def test_gates_are_drawn_where_none_of_them_stops():
    signals = make_signals(["math"]).filter(pl.col("kind") != "trigger")
    assert len(check_figure(gates_figure(signals)).axes) == 3
