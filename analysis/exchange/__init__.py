"""Exchange trajectories and runs with other projects and the hub.

`import_trajectories` reads the trajectories that other projects publish, without running any of
their code; `export_steps` writes the step at which each token was unmasked, in the form that
serving engines use; `push_runs` and `pull_runs` upload and download runs. Torch is loaded only for
`.pt` files.
"""

from c4.analysis.exchange.export import export_steps, step_map
from c4.analysis.exchange.hub import pull_runs, push_runs
from c4.analysis.exchange.imports import IMPORTED, Source, import_trajectories, summarise_imported

__all__ = [
    "IMPORTED",
    "Source",
    "export_steps",
    "import_trajectories",
    "pull_runs",
    "push_runs",
    "step_map",
    "summarise_imported",
]
