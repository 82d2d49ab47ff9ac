"""All tasks by name: c4's own, and those that users bring along."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

from c4.errors import ConfigError
from c4.plugins import Registry, unknown_object
from c4.tasks import (
    arc_c,
    asdiv,
    gsm8k,
    gsmhard,
    hellaswag,
    humaneval,
    math,
    mbpp,
    mmlu,
    piqa,
    svamp,
    truthfulqa,
    winogrande,
)
from c4.tasks._shapes import SHAPES
from c4.tasks.extractors import guard_extractor
from c4.tasks.task import Task

LETTERS = (mmlu, arc_c, hellaswag, winogrande, piqa, truthfulqa)
LONG_REASONING = (gsm8k, math, svamp, asdiv, gsmhard)
CODE = (humaneval, mbpp)

TASKS: dict[str, Task] = {
    module.TASK.name: module.TASK for module in (*LETTERS, *LONG_REASONING, *CODE)
}
"""Every task by its name."""


def is_task(found: Any) -> bool:
    """Whether an object is a task."""
    return isinstance(found, Task)


REGISTRY = Registry("task", "--task", TASKS, example="my_task:TASK", fits=is_task)
"""Every task that a user can name, besides YAML files and those of other programs."""
TASK_SOURCES = "c4.task_sources"
"""Entry-point group of functions that make a task of what follows a prefix: `lm-eval:gsm8k`."""
PLAIN_NAME = re.compile(r"[A-Za-z0-9][\w.:+-]{0,99}")
"""What a task of a user's own may be called: the name becomes a folder's."""
OWN_TASK = "one of your own: path/to/file.py:object, module:object or path/to/file.yaml"
"""How a task of a user's own is named, for messages."""
_NAMED: dict[str, Task] = {}
"""Tasks of users' own that this process has been told of, by what their runs go by."""


def find_task(name: str) -> Task:
    """The task that a user names; unless it is c4's own or a YAML file, code is run.

    From then on, `get_task` knows it by the name that its runs go by.
    """
    if name in TASKS:
        return TASKS[name]
    prefix, colon, rest = name.partition(":")
    points = {point.name: point for point in entry_points(group=TASK_SOURCES)} if colon else {}
    if name in _NAMED and (prefix in points or not REGISTRY.knows(name)):
        return _NAMED[name]
    if prefix in points:
        return adopt_task(points[prefix].load()(rest))
    if _is_yaml(name):
        from c4.tasks._yaml import load_yaml_task

        return adopt_task(load_yaml_task(name))
    if not REGISTRY.knows(name):
        raise unknown_task(name, REGISTRY.names)
    plugin = REGISTRY.find(name)
    if not is_task(plugin.found):
        raise ConfigError(f"{name} is no task: it must be a c4.tasks.Task, as in TASK = Task(…)")
    definition = {"task": plugin.name, **plugin.identity}
    own_shape = plugin.found.shape != SHAPES[plugin.found.family]
    fixed = plugin.found.fixed_shape or own_shape
    guarded: dict[str, Any] = {
        name: guard_extractor(plugin.found.name, getattr(plugin.found, name))
        for name in ("extract", "plain")
    }
    task = replace(plugin.found, definition=definition, fixed_shape=fixed, **guarded)
    return adopt_task(task)


def unknown_task(name: str, known: Iterable[str]) -> ConfigError:
    """The error for a task that there is not, with the nearest names."""
    return unknown_object("task", name, known, also=OWN_TASK)


def names_task(name: str) -> bool:
    """Whether a text is the name of a task, or could be: a file, or something with a colon."""
    return knows_task(name) or REGISTRY.knows(name) or _is_yaml(name)


def _is_yaml(name: str) -> bool:
    return name.endswith((".yaml", ".yml"))


def adopt_task(task: Task) -> Task:
    """Let `get_task` know a task of a user's own; its name must be its own."""
    if task.name in TASKS:
        raise ConfigError(f"the task {task.name} would pass for c4's own; give it another name")
    if not PLAIN_NAME.fullmatch(task.name):
        raise ConfigError(
            f"{task.name!r} cannot be a task's name: letters, digits, dots, dashes and underscores"
        )
    _NAMED[task.name] = task
    return task


def learn_task(name: str, definition: Mapping[str, Any]) -> None:
    """Let `get_task` know a task of which a recording says everything, because it was a YAML file.

    Only data is read. A task that the user has named comes first, unless its source was edited
    since: then some answers would be graded as before and others by what it has become.
    """
    _refuse_edited(name, definition)
    if name in TASKS or "fields" not in definition:
        return
    fields = definition["fields"]
    if not isinstance(fields, Mapping) or str(fields.get("task")) != name:
        raise ConfigError(f"its task is {name}, but the definition it holds is of another task")
    known = _NAMED.get(name)
    if known is None:
        from c4.tasks._yaml import task_from_fields

        adopt_task(task_from_fields(fields, f"the task {name}", Path()))
    elif known.definition.get("fields", fields) != fields:
        raise ConfigError(f"its task {name} is defined otherwise than another of that name")


def _refuse_edited(name: str, definition: Mapping[str, Any]) -> None:
    known = _NAMED.get(name)
    before = definition.get("source_sha256")
    now = None if known is None else known.definition.get("source_sha256")
    if before is not None and now is not None and before != now:
        raise ConfigError(
            f"made before the source of its task {name} was edited; bring the old source back, or "
            "record again with --out for a place of its own"
        )


def knows_task(name: str) -> bool:
    """Whether recordings of a task can be read: it is c4's own, a YAML file's, or was named."""
    return name in TASKS or name in _NAMED


def get_task(name: str) -> Task:
    """The task of this name; an unknown name is an error that lists the nearest ones."""
    if name in TASKS:
        return TASKS[name]
    if name in _NAMED:
        return _NAMED[name]
    raise unknown_task(name, TASKS)
