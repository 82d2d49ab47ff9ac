"""Replay: read a recording and ask a gate when it would have stopped.

Knows nothing of models; a run folder and a gate are enough. `load_signals` turns a recording
into arrays that no threshold can change, a gate compares them, `replay` says what followed.
`LiveGate` asks the same gate inside a decode.
"""

from c4.replay._cache import RunSignals, load_signals, stack_signals
from c4.replay._candidates import TAIL_FRAC, CandidateReader, filled_predictions
from c4.replay._gates import (
    CVEE,
    GATES,
    ConfidenceOnly,
    FixedPatience,
    FixedProgress,
    Gate,
    Oracle,
    Prophet,
    SchED,
    StabilityOnly,
    exit_step,
    stabilization_step,
)
from c4.replay._live import LiveGate
from c4.replay._registry import make_gate
from c4.replay._replay import DECISIONS, exit_steps, replay, summarise_decisions
from c4.replay._signals import NONE, LiveSignals, Signals, read_signals

__all__ = [
    "CVEE",
    "DECISIONS",
    "GATES",
    "NONE",
    "TAIL_FRAC",
    "CandidateReader",
    "ConfidenceOnly",
    "FixedPatience",
    "FixedProgress",
    "Gate",
    "LiveGate",
    "LiveSignals",
    "Oracle",
    "Prophet",
    "RunSignals",
    "SchED",
    "Signals",
    "StabilityOnly",
    "exit_step",
    "exit_steps",
    "filled_predictions",
    "load_signals",
    "make_gate",
    "read_signals",
    "replay",
    "stabilization_step",
    "stack_signals",
    "summarise_decisions",
]
