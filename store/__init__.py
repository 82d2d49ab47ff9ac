"""Store: writing runs atomically to disk and reading them back.

A run is the decodes of one model, task and method. `open_run` opens a run, `find_runs` finds runs;
rows come with their grades, cells as arrays of (steps, positions). Does not load models or torch.
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
