"""c4: record, replay and calibrate early exit in masked diffusion language models.

`open` reads a run, which offers `replay`, `signals` and `trajectory`; `calibrate` chooses a gate's
setting; the figures draw the resulting frames directly. Importing c4 loads nothing: every name is
imported on first use, and only decoding loads torch.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from c4._calibration import Calibrated, calibrate
    from c4._check import check
    from c4._decisions import Decisions
    from c4._run import Run, Runs, Trajectory, open, open_all  # noqa: A004 - read as `c4.open`
    from c4.figures import phase_diagram, stabilization_figure, text_figure, trace_figure
    from c4.gates import CVEE, Prophet, SchED, make_gate
    from c4.replay import Requirement

HOMES = {
    "c4._check": ("check",),
    "c4._calibration": ("Calibrated", "calibrate"),
    "c4._decisions": ("Decisions",),
    "c4._run": ("Run", "Runs", "Trajectory", "open", "open_all"),
    "c4.figures": ("phase_diagram", "stabilization_figure", "text_figure", "trace_figure"),
    "c4.gates": ("CVEE", "Prophet", "SchED", "make_gate"),
    "c4.replay": ("Requirement",),
}
"""Public names by the module that defines them."""

__all__ = [
    "CVEE",
    "Calibrated",
    "Decisions",
    "Prophet",
    "Requirement",
    "Run",
    "Runs",
    "SchED",
    "Trajectory",
    "calibrate",
    "check",
    "make_gate",
    "open",
    "open_all",
    "phase_diagram",
    "stabilization_figure",
    "text_figure",
    "trace_figure",
]


def __getattr__(name: str) -> Any:
    if name == "view":  # as in `c4.view.show(run, 52)`
        return import_module("c4.view")
    for home, names in HOMES.items():
        if name in names:
            return getattr(import_module(home), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, "view"])
