"""Gates: may decoding stop at this step?

A gate is frozen parameters and one pure function of the signals, evaluated on a recording or inside
a decode. `load_signals` turns a run into arrays that do not depend on any threshold; `make_gate`
builds a gate by name, with the paper's settings. Needs no model and loads no torch.
"""

from c4.gates.cvee import CVEE, ConfidenceOnly, FixedPatience, StabilityOnly
from c4.gates.gate import Gate
from c4.gates.live import LiveGate
from c4.gates.oracle import Oracle
from c4.gates.own_signals import OwnSignal
from c4.gates.progress import FixedProgress
from c4.gates.prophet import Prophet
from c4.gates.registry import GATES, make_gate
from c4.gates.run_signals import RunSignals, load_signals
from c4.gates.sched import SchED
from c4.gates.signals import Signals
from c4.gates.steps import StepView
from c4.plugins.parameters import parameter

__all__ = [
    "CVEE",
    "GATES",
    "ConfidenceOnly",
    "FixedPatience",
    "FixedProgress",
    "Gate",
    "LiveGate",
    "Oracle",
    "OwnSignal",
    "Prophet",
    "RunSignals",
    "SchED",
    "Signals",
    "StabilityOnly",
    "StepView",
    "load_signals",
    "make_gate",
    "parameter",
]
