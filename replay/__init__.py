"""Replay: when would a gate have stopped, and what would the answer have been?

`replay` evaluates gates on a recording; `calibrate` finds the cheapest setting of a gate that meets
a requirement. Needs runs and gates, but no model.
"""

from c4.gates.calibration_files import FrozenSetting, load_calibration
from c4.replay.calibration import (
    Calibration,
    Loss,
    Requirement,
    calibrate,
    evaluate_setting,
    save_calibration,
)
from c4.replay.certificates import Control
from c4.replay.decisions import DECISIONS, replay, summarise_decisions
from c4.replay.grids import Grid, make_grid
from c4.replay.pools import Pools, RunSplit, split_runs

__all__ = [
    "DECISIONS",
    "Calibration",
    "Control",
    "FrozenSetting",
    "Grid",
    "Loss",
    "Pools",
    "Requirement",
    "RunSplit",
    "calibrate",
    "evaluate_setting",
    "load_calibration",
    "make_grid",
    "replay",
    "save_calibration",
    "split_runs",
    "summarise_decisions",
]
