"""The tasks of recordings, by the names that runs go by.

A manifest holds the whole of a task that was a YAML file, which is data. Of a task that is code it
holds the name, which is told to the user and never loaded.
"""

import shlex
from collections.abc import Iterator

from c4.errors import ConfigError, RunError
from c4.store.locations import Location
from c4.store.manifest import ROWS_ASKED, Manifest, read_manifest
from c4.store.runs import find_runs, task_named
from c4.tasks import Task, find_task, get_task
from c4.tasks.registry import REGISTRY, learn_task, names_task, unknown_task


def find_recorded_task(name: str, root: Location) -> Task:
    """The task that a user names, also by what its runs below a folder go by."""
    if names_task(name):
        return find_task(name)
    manifest = _recorded(name, root)
    definition = manifest.identity.get("task_definition", {})
    if "fields" not in definition:
        raise ConfigError(
            f"the task {name} is code of your own, which a recording names and never loads; name "
            f"it as it was recorded: --task {shlex.quote(task_named(manifest))}"
        )
    learn_task(name, definition, manifest.asked.get(ROWS_ASKED))
    return get_task(name)


def _recorded(name: str, root: Location) -> Manifest:
    """The manifest of a run whose task goes by a name; none is an error with the nearest names."""
    found = {manifest.identity["task"]: manifest for manifest in _manifests(root)}
    if name not in found:
        known = dict.fromkeys([*REGISTRY.names, *found])
        raise unknown_task(name, known)
    return found[name]


def _manifests(root: Location) -> Iterator[Manifest]:
    for folder in find_runs(root):
        try:
            yield read_manifest(folder)
        except RunError:  # opening the run will say it
            continue
