"""What stands beside the weights: `training.json` and the loss curve."""

import json
import math
import platform
from collections.abc import Mapping
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from training.settings import PHASES, SHAPES, PhaseSettings, Settings

COLOURS = ("#b8860b", "#8a8a8a", "#1f5fa8", "#2e7d32", "#8e44ad")
"""Colours of the phases, in their order."""
LIBRARIES = ("torch", "transformers", "tokenizers", "safetensors", "numpy")

Log = list[dict[str, Any]]


def read_log(work: Path) -> Log:
    """Log lines in order.

    A training that was killed repeats the steps since its checkpoint; the last account counts.
    """
    lines = [json.loads(line) for line in (work / "log.jsonl").read_text().splitlines()]
    latest = {(line["phase"], line["step"]): line for line in lines}
    order = [phase.name for phase in PHASES]
    return sorted(latest.values(), key=lambda line: (order.index(line["phase"]), line["step"]))


def write_report(work: Path, out: Path, settings: Settings, facts: Mapping[str, Any]) -> None:
    """Write `training.json` and `loss.png` into the folder of the weights."""
    log = read_log(work)
    report = {
        "settings": asdict(settings),
        "shapes": {family: asdict(shape) for family, shape in SHAPES.items()},
        **facts,
        "phases": [_phase_facts(phase, log) for phase in PHASES],
        "versions": {"python": platform.python_version()} | {x: version(x) for x in LIBRARIES},
    }
    (out / "training.json").write_text(json.dumps(report, indent=1) + "\n")
    loss_figure(log).savefig(out / "loss.png", dpi=150)


def _phase_facts(phase: PhaseSettings, log: Log) -> dict[str, Any]:
    """The settings of a phase and what came of them."""
    lines = [line for line in log if line["phase"] == phase.name]
    last = lines[-1]
    tail = [line["loss"] for line in lines[-10:]]
    return asdict(phase) | {
        "steps": last["step"],
        "tokens": last["tokens"],
        "problems": last.get("problems", {}),
        "seconds": last["seconds"],
        "first_loss": lines[0]["loss"],
        "last_loss": round(sum(tail) / len(tail), 4),
    }


def loss_figure(log: Log) -> Figure:
    """Loss against training time, one phase after the other."""
    figure = Figure(figsize=(7.0, 3.6), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    start = 0.0
    for phase, colour in zip(PHASES, COLOURS, strict=True):
        lines = [line for line in log if line["phase"] == phase.name]
        if lines:
            start = _draw_phase(axes, lines, colour, start)
    _style(axes)
    return figure


def _style(axes: Axes) -> None:
    axes.set_yscale("log")
    axes.set_xlim(left=0)
    axes.set_xlabel("training time (minutes)")
    axes.set_ylabel("weighted loss (nats)")
    axes.grid(True, which="major", color="0.9", linewidth=0.6)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False)


def _draw_phase(axes: Axes, lines: Log, colour: str, start: float) -> float:
    """Draw one phase from `start` minutes on; returns where it ends."""
    minutes = [start + line["seconds"] / 60 for line in lines]
    losses = [line["loss"] for line in lines]
    axes.plot(minutes, losses, color=colour, linewidth=0.6, alpha=0.35)
    axes.plot(minutes, _smooth(losses), color=colour, linewidth=1.6, label=lines[0]["phase"])
    if start:
        axes.axvline(start, color="0.6", linewidth=0.8, linestyle=":")
    return minutes[-1]


def _smooth(values: list[float], span: int = 6) -> list[float]:
    """Geometric means over up to `span` values on either side: the axis is logarithmic."""
    windows = [values[max(0, i - span) : i + span + 1] for i in range(len(values))]
    return [math.prod(window) ** (1 / len(window)) for window in windows]
