"""Exchange: bring trajectories and runs in from other projects and the hub, and send them there.

`import_trajectories` reads the trajectories that other projects publish, and runs nothing of them;
`export_steps` writes the step at which each token was unmasked, as serving engines exchange it;
`push_runs` and `pull_runs` bring runs to and from the hub. Only `.pt` files load torch.
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
