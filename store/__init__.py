"""Store: a run on disk, written whole and read back.

A run is a model, a task and a method. `open_run` reads one, `find_runs` finds them; rows come with
their grades, cells as arrays of (steps, positions). Knows nothing of models and loads no torch.
"""

from c4.store.cells import Cells
from c4.store.manifest import Manifest
from c4.store.origins import Origin
from c4.store.rows import Row
from c4.store.runs import Run, Trajectory, find_recordings, find_runs, open_run
from c4.store.summary import RunSummary, summarise
from c4.store.timings import read_timings

__all__ = [
    "Cells",
    "Manifest",
    "Origin",
    "Row",
    "Run",
    "RunSummary",
    "Trajectory",
    "find_recordings",
    "find_runs",
    "open_run",
    "read_timings",
    "summarise",
]
