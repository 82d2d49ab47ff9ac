"""The tasks of recordings, by the names that runs go by.

A manifest holds the whole of a task that was a YAML file, which is data. Of a task that is code it
holds the name, which is told to the user and never loaded.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from c4.errors import ConfigError, RunError, unknown_name
from c4.store.locations import Location
from c4.store.manifest import read_manifest
from c4.store.runs import find_runs, named_as
from c4.tasks import Task, find_task, get_task
from c4.tasks.registry import OWN_TASK, REGISTRY, learn_task, names_task


def find_recorded_task(name: str, root: Location) -> Task:
    """The task that a user names, also by what its runs below a folder go by."""
    if names_task(name):
        return find_task(name)
    identity = _recorded(name, root)
    if "fields" not in identity.get("task_definition", {}):
        raise ConfigError(
            f"the task {name} is code of your own, which a recording names and never loads; name "
            f"it as it was recorded: {named_as(identity)}"
        )
    learn_task(name, identity["task_definition"])
    return get_task(name)


def _recorded(name: str, root: Location) -> Mapping[str, Any]:
    """The identity of a run whose task goes by a name; none is an error with the nearest names."""
    found = {identity["task"]: identity for identity in _identities(root)}
    if name not in found:
        known = dict.fromkeys([*REGISTRY.names, *found])
        raise unknown_name("task", name, known, also=OWN_TASK)
    return found[name]


def _identities(root: Location) -> Iterator[Mapping[str, Any]]:
    for folder in find_runs(root):
        try:
            yield read_manifest(folder).identity
        except RunError:  # opening the run will say it
            continue
