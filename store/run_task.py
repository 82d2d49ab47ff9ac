"""The task of a run: a built-in one, one that the caller named, or the YAML task in its manifest.

A manifest holds the complete definition of a YAML task, because that is data. Of a task that is
code it holds only the name, which is shown to the user and never loaded.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from c4.errors import ConfigError
from c4.errors.text import differences
from c4.store.manifest import ROWS_ASKED, Manifest
from c4.tasks import TASKS, Task
from c4.tasks.registry import check_name

WORDING = ("prompt", "prompt_sha256")
"""Fields of a definition that `--prompt` adds; they do not affect how answers are graded."""
OF_EVALUATION = "prompts"
"""Field in the definition of a task whose prompts came from an lm-eval evaluation."""


def task_typed(manifest: Manifest) -> str:
    """Return the `--task` argument for a run: as the user typed it, or its task's name."""
    name = manifest.identity["task"]
    usual = manifest.identity.get("task_definition", {}).get("task", name)
    return manifest.asked.get("task", str(usual))


def task_of_run(manifest: Manifest, named: Iterable[Task] = ()) -> Task | None:
    """Return the task of a run; None if it is code and the caller did not name it.

    A task that the caller named takes precedence, and must equal the recorded one: otherwise old
    and new answers would be graded by different definitions.
    """
    name = str(manifest.identity["task"])
    definition = manifest.identity.get("task_definition", {})
    recorded = {key: value for key, value in definition.items() if key not in WORDING}
    if name in TASKS:
        if recorded:
            raise ConfigError(f"its task {name} is not c4's own, but another of that name")
        return TASKS[name]
    if "fields" in recorded:
        fields = recorded["fields"]
        if not isinstance(fields, Mapping) or str(fields.get("task")) != name:
            raise ConfigError(f"its task is {name}, but the definition it holds is of another task")
        from c4.tasks.yaml_tasks import kept_fields, task_from_fields

        recorded["fields"] = kept_fields(fields)
    known = next((task for task in named if task.name == name), None)
    if known is not None:
        _require_same(known, recorded)
        return known
    if "fields" not in recorded:
        return None
    rows = manifest.asked.get(ROWS_ASKED)
    task = task_from_fields(recorded["fields"], f"the task {name}", Path(), rows)
    check_name(task)
    return task


def _require_same(task: Task, recorded: Mapping[str, Any]) -> None:
    """Refuse a task whose definition differs from the recorded one of its name."""
    there = dict(recorded)
    here = {key: value for key, value in task.definition.items() if key not in WORDING}
    if not there:  # the manifest holds only the name
        return
    if OF_EVALUATION in there:  # made from requests, so it holds no hash of a file
        here = {key: value for key, value in here.items() if key in there}
        there = {key: value for key, value in there.items() if key in here}
    differ = "; ".join(differences(there, here))
    if not differ:
        return
    if there.keys() != here.keys() or there.get("task") != here.get("task"):
        raise ConfigError(
            f"its task {task.name} is another one than the task named ({differ}); name it as it "
            "was recorded"
        )
    raise ConfigError(
        f"made before the source of its task {task.name} was edited ({differ}); bring the old "
        "source back, or record again with --out for a place of its own"
    )
