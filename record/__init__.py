"""Record: decode a task at full budget and keep every step on disk; read it back.

`plan_recording` resolves and checks a configuration, `start_recording` carries it out and
gives each trajectory once it is safe. `open_run` reads a recording as arrays of (steps,
positions). The decode loop takes a commit rule and an observer and knows no method by name.
"""

from c4.record._cctc import CCTC
from c4.record._cells import CellRecorder, Cells, encode_table, stack_views
from c4.record._commit import Block, Choice, CommitRule, Commits, Origin, Predictor, Schedule
from c4.record._decode import Decoded, ExitGate, Observer, StepView, decode
from c4.record._format import (
    CELLS,
    TRAJECTORIES,
    Manifest,
    list_parts,
    open_part,
    run_folder,
    write_part,
)
from c4.record._klass import KLASS
from c4.record._parameters import Checked, parameter, typed_parameters
from c4.record._record import (
    Plan,
    RecordConfig,
    Recording,
    RunSummary,
    plan_recording,
    start_recording,
    summarise,
)
from c4.record._regrade import regrade
from c4.record._rows import TrajectoryRow
from c4.record._run import Run, RunPart, Trajectory, find_runs, open_run
from c4.record._slowfast import SlowFast
from c4.record._text import TokenText, Vocabulary
from c4.record._threshold import Threshold
from c4.record._types import BoolArray, FloatArray, IntArray, TokenArray
from c4.record._wino import WINO

__all__ = [
    "CCTC",
    "CELLS",
    "KLASS",
    "TRAJECTORIES",
    "WINO",
    "Block",
    "BoolArray",
    "CellRecorder",
    "Cells",
    "Checked",
    "Choice",
    "CommitRule",
    "Commits",
    "Decoded",
    "ExitGate",
    "FloatArray",
    "IntArray",
    "Manifest",
    "Observer",
    "Origin",
    "Plan",
    "Predictor",
    "RecordConfig",
    "Recording",
    "Run",
    "RunPart",
    "RunSummary",
    "Schedule",
    "SlowFast",
    "StepView",
    "Threshold",
    "TokenArray",
    "TokenText",
    "Trajectory",
    "TrajectoryRow",
    "Vocabulary",
    "decode",
    "encode_table",
    "find_runs",
    "list_parts",
    "open_part",
    "open_run",
    "parameter",
    "plan_recording",
    "regrade",
    "run_folder",
    "stack_views",
    "start_recording",
    "summarise",
    "typed_parameters",
    "write_part",
]
