"""Replay: read a recording and ask a gate when it would have stopped.

Knows nothing of models; a run folder and a gate are enough. `load_signals` turns a recording
into arrays that no threshold can change, a gate compares them, `replay` says what followed.
`LiveGate` asks the same gate inside a decode, and `plan_methods` joins gates and commit rules
into methods that run live.
"""

from c4.replay._cache import RunSignals, load_signals, stack_signals
from c4.replay._calibrate import (
    Calibration,
    FrozenSetting,
    Loss,
    Promise,
    calibrate,
    evaluate_setting,
    load_calibration,
    save_calibration,
)
from c4.replay._candidates import TAIL_FRAC, CandidateReader, filled_predictions
from c4.replay._certify import Control, certify, trajectories_needed
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
    ask,
    can_run_live,
    exit_step,
    require_live,
    stabilization_step,
)
from c4.replay._grader import ReplayGrader
from c4.replay._grid import Grid, grid_exits, make_grid, parse_value
from c4.replay._live import LiveGate
from c4.replay._methods import MethodChoice, choose_live, plan_methods, resolve_methods
from c4.replay._pool import SET_ASIDE, Cohort, Pools, pool_size
from c4.replay._registry import make_gate, refuse_sampler
from c4.replay._replay import DECISIONS, Split, replay, summarise_decisions
from c4.replay._signals import NONE, LiveSignals, SignalReading, Signals, read_signals
from c4.replay._split import RunSplit, split_runs
from c4.replay._verify import Check, verify

__all__ = [
    "CVEE",
    "DECISIONS",
    "GATES",
    "NONE",
    "SET_ASIDE",
    "TAIL_FRAC",
    "Calibration",
    "CandidateReader",
    "Check",
    "Cohort",
    "ConfidenceOnly",
    "Control",
    "FixedPatience",
    "FixedProgress",
    "FrozenSetting",
    "Gate",
    "Grid",
    "LiveGate",
    "LiveSignals",
    "Loss",
    "MethodChoice",
    "Oracle",
    "Pools",
    "Promise",
    "Prophet",
    "ReplayGrader",
    "RunSignals",
    "RunSplit",
    "SchED",
    "SignalReading",
    "Signals",
    "Split",
    "StabilityOnly",
    "ask",
    "calibrate",
    "can_run_live",
    "certify",
    "choose_live",
    "evaluate_setting",
    "exit_step",
    "filled_predictions",
    "grid_exits",
    "load_calibration",
    "load_signals",
    "make_gate",
    "make_grid",
    "parse_value",
    "plan_methods",
    "pool_size",
    "read_signals",
    "refuse_sampler",
    "replay",
    "require_live",
    "resolve_methods",
    "save_calibration",
    "split_runs",
    "stabilization_step",
    "stack_signals",
    "summarise_decisions",
    "trajectories_needed",
    "verify",
]
