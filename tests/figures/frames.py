"""Frames of every kind a figure may meet, hard ones among them, and what holds for all figures."""

import numpy as np
import polars as pl
import pytest

from c4.analysis.outcomes import OUTCOMES
from c4.analysis.phases import GATE_SIGNALS, PHASES
from c4.analysis.stabilization import SETTLING
from c4.figures import Width
from c4.tasks import TASKS

CASES = {
    "plain": {"models": ["tiny"], "tasks": ["mmlu", "gsm8k", "humaneval"], "n": 12},
    "one trajectory": {"models": ["tiny"], "tasks": ["math"], "n": 1},
    "none fires": {"models": ["tiny"], "tasks": ["math", "mmlu"], "n": 5, "fires": 0.0},
    "never settles": {"models": ["tiny"], "tasks": ["math"], "n": 6, "never": 1.0},
    "thirteen tasks": {"models": ["tiny"], "tasks": list(TASKS), "n": 4},
    "two models, long names": {
        "models": ["GSAI-ML--LLaDA-8B-Instruct", "Dream-org--Dream-v0-Instruct-7B"],
        "tasks": ["truthfulqa", "winogrande", "gsmhard"],
        "n": 4,
        "never": 0.3,
    },
}
SLOW = pytest.mark.slow
WIDTHS = [
    Width.COLUMN,
    pytest.param(Width.PAGE, marks=SLOW),
    pytest.param(None, marks=SLOW, id="as it comes"),
]
"""CI draws the narrowest figure, in which room is scarce."""
STEPS = 24
SETTLES = {"letters": (1, 15), "long_reasoning": (9, 2), "code": (3, 4)}


def make_phases(models, tasks, n, *, fires=1.0, never=0.0, gates=("prophet", "cvee")):
    """Exits and stabilizations that look like the real ones."""
    rng = np.random.default_rng(0)
    rows = []
    for model in models:
        for task in tasks:
            for trajectory in range(n):
                settled = float(np.clip(rng.beta(*SETTLES[TASKS[task].family]), 0.02, 1))
                settled = None if rng.random() < never else settled
                for gate in gates:
                    fired = bool(rng.random() < fires)
                    exit_at = float(rng.uniform(0.02, 1)) if fired else 1.0
                    premature = None if settled is None else fired and exit_at < settled
                    early = settled - exit_at if premature else None
                    key = (model, task, TASKS[task].family, model + task, trajectory, False, gate)
                    rows.append((*key, fired, exit_at, settled, premature, early))
    return pl.DataFrame(rows, schema=PHASES, orient="row")


def make_settling(phases):
    one = phases.filter(pl.col("gate") == phases["gate"][0])
    shown = pl.col("stabilization") * 0.5
    return one.with_columns(first_appearance=shown).select(SETTLING.names())


def make_signals(tasks, gates=("prophet", "cvee")):
    rng = np.random.default_rng(0)
    rows = []
    for task in tasks:
        key = {"model": "tiny", "task": task, "family": str(TASKS[task].family), "cohort": task}
        for signal in ("gap", "confidence", "entropy"):
            for step in range(1, STEPS + 1):
                value = float(rng.random())
                course = {"value": value, "low": value - 0.1, "high": value + 0.1}
                rows.append(
                    key | course | {"kind": "course", "signal": signal, "progress": step / STEPS}
                )
            for trajectory in range(3):
                moment = {"signal": signal, "trajectory": trajectory, "value": 0.5}
                rows.append(key | moment | {"kind": "settled", "progress": 0.8})
                for gate in gates:
                    rows.append(key | moment | {"kind": "trigger", "gate": gate, "progress": 0.4})
    return pl.DataFrame(rows, schema=GATE_SIGNALS)


def make_outcomes(models, tasks, n, methods=("baseline", "cvee", "c4"), **_):
    """Steps, blocks and grades of several methods; C4 thins blocks, CVEE cuts them off."""
    rng = np.random.default_rng(0)
    rows = []
    for model in models:
        for task in tasks:
            blocks = 4 if TASKS[task].family == "letters" else 8
            for method in methods:
                for trajectory in range(40, 40 + n):
                    spent = [8] * blocks
                    if method.startswith("c4"):
                        spent = rng.integers(1, 5, size=blocks).tolist()
                    if method == "cvee":
                        spent = [8] * (blocks - 1) + [0]
                    shape = (8 * blocks, 8 * blocks, 8)
                    where = (model, task, TASKS[task].family, model + task)
                    key = (*where, method, "decoded", trajectory, False)
                    answer = "a" if method == "baseline" else str(rng.choice(["a", "b"]))
                    right = bool(rng.random() < 0.6)
                    result = (sum(spent), method == "cvee", answer, right, False)
                    rest = (spent, [0.01 * s for s in spent], 0.1, settings_of(method))
                    rows.append((*key, *shape, *result, *rest))
    return pl.DataFrame(rows, schema=OUTCOMES, orient="row")


def settings_of(method):
    hole = method.partition("H=")[2] or "1"
    return '{"rule": {"name": "cctc", "H": %s}}' % ('"inf"' if hole == "inf" else hole)


def check_figure(figure, asked=None):
    """Neither tick labels nor titles overlap, nothing that is written leaves the page."""
    if asked is not None:
        assert figure.get_figwidth() == pytest.approx({"column": 3.4, "page": 7.0}[asked])
    figure.draw_without_rendering()  # everything gets its place, and no pixel its colour
    width, height = figure.canvas.get_width_height()
    titles = [title for ax in figure.axes for title in (ax.title, ax._left_title)]
    check_apart([title.get_window_extent() for title in titles if title.get_text()])
    for ax in figure.axes:
        for axis in (ax.xaxis, ax.yaxis):
            labels = [t for t in axis.get_ticklabels() if t.get_text() and t.get_visible()]
            low, high = sorted(axis.get_view_interval())
            ticks = axis.get_ticklocs()
            boxes = [
                label.get_window_extent()
                for label, tick in zip(axis.get_ticklabels(), ticks, strict=False)
                if label in labels and low <= tick <= high
            ]
            check_apart(boxes)
        for text in (*ax.texts, ax.title, ax._left_title, ax.xaxis.label, ax.yaxis.label):
            if text.get_text().strip():
                check_inside(text.get_window_extent(), width, height)
    for legend in figure.legends:
        box = legend.get_window_extent()
        check_inside(box, width, height)
        for text in legend.get_texts():
            check_inside(text.get_window_extent(), width, height)
        for title in titles:
            assert not (title.get_text() and title.get_window_extent().overlaps(box)), title
    return figure


def check_apart(boxes):
    for i, box in enumerate(boxes):
        assert not any(box.overlaps(other) for other in boxes[i + 1 :]), box


def check_inside(box, width, height):
    assert min(box.x0, box.y0) >= -1, box
    assert box.x1 <= width + 1, box
    assert box.y1 <= height + 1, box
