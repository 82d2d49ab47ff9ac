"""Record: decode a task at full budget and keep every step on disk; read it back.

`plan_recording` resolves and checks a configuration, `start_recording` carries it out and
gives each trajectory once it is safe; `plan_live` does the same for a method of `METHODS`.
`open_run` reads a recording as arrays of (steps, positions), `open_live` the results of a live
run. The decode loop takes a commit rule, a gate and an observer and knows no method by name.
"""

from c4.record._bench import Bench, TimingProtocol, read_timings, write_bench
from c4.record._cctc import CCTC
from c4.record._cells import CellRecorder, Cells, encode_table, stack_views
from c4.record._commit import Block, Choice, CommitRule, Commits, Origin, Predictor, Rule, Schedule
from c4.record._decode import Decoded, ExitGate, Observer, StepView, decode
from c4.record._format import (
    BENCH,
    CELLS,
    LIVE,
    TRAJECTORIES,
    Manifest,
    Part,
    list_parts,
    live_folder,
    open_part,
    run_folder,
    write_part,
)
from c4.record._forward import Cache, Forward
from c4.record._klass import KLASS
from c4.record._live import (
    LiveRun,
    LiveSummary,
    conditions,
    find_live,
    open_any,
    open_live,
    summarise_live,
)
from c4.record._methods import (
    METHODS,
    RULES,
    Choices,
    LiveMethod,
    Method,
    label_under,
    make_rule,
    reading_words,
    rule_settings,
)
from c4.record._parameters import Checked, parameter, typed_parameters
from c4.record._plan import (
    Plan,
    RecordConfig,
    load_planned,
    plan_decode,
    plan_live,
    plan_recording,
)
from c4.record._record import Recording, RunSummary, start_recording, summarise
from c4.record._regrade import regrade
from c4.record._rows import LiveFacts, LiveRow, TrajectoryRow
from c4.record._run import Run, RunPart, Trajectory, find_runs, open_run
from c4.record._slowfast import SlowFast
from c4.record._text import TokenText, Vocabulary
from c4.record._threshold import Threshold
from c4.record._types import BoolArray, FloatArray, IntArray, TokenArray
from c4.record._wino import WINO

__all__ = [
    "BENCH",
    "CCTC",
    "CELLS",
    "KLASS",
    "LIVE",
    "METHODS",
    "RULES",
    "TRAJECTORIES",
    "WINO",
    "Bench",
    "Block",
    "BoolArray",
    "Cache",
    "CellRecorder",
    "Cells",
    "Checked",
    "Choice",
    "Choices",
    "CommitRule",
    "Commits",
    "Decoded",
    "ExitGate",
    "FloatArray",
    "Forward",
    "IntArray",
    "LiveFacts",
    "LiveMethod",
    "LiveRow",
    "LiveRun",
    "LiveSummary",
    "Manifest",
    "Method",
    "Observer",
    "Origin",
    "Part",
    "Plan",
    "Predictor",
    "RecordConfig",
    "Recording",
    "Rule",
    "Run",
    "RunPart",
    "RunSummary",
    "Schedule",
    "SlowFast",
    "StepView",
    "Threshold",
    "TimingProtocol",
    "TokenArray",
    "TokenText",
    "Trajectory",
    "TrajectoryRow",
    "Vocabulary",
    "conditions",
    "decode",
    "encode_table",
    "find_live",
    "find_runs",
    "label_under",
    "list_parts",
    "live_folder",
    "load_planned",
    "make_rule",
    "open_any",
    "open_live",
    "open_part",
    "open_run",
    "parameter",
    "plan_decode",
    "plan_live",
    "plan_recording",
    "read_timings",
    "reading_words",
    "regrade",
    "rule_settings",
    "run_folder",
    "stack_views",
    "start_recording",
    "summarise",
    "summarise_live",
    "typed_parameters",
    "write_bench",
    "write_part",
]
