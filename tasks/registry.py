"""Tasks by name: the built-in ones and those that users define."""

import re
import sys
from collections.abc import Iterable
from dataclasses import replace
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any

from c4.errors import ConfigError, naming_failures
from c4.errors.system import exists, user_path
from c4.plugins import Registry, load_offered, unknown_object
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
from c4.tasks.reading.extractors import guard_extractor
from c4.tasks.task import SHAPES, Task

LETTERS = (mmlu, arc_c, hellaswag, winogrande, piqa, truthfulqa)
LONG_REASONING = (gsm8k, math, svamp, asdiv, gsmhard)
CODE = (humaneval, mbpp)

TASKS: dict[str, Task] = {
    module.TASK.name: module.TASK for module in (*LETTERS, *LONG_REASONING, *CODE)
}
"""The built-in tasks by name."""


def is_task(found: Any) -> bool:
    """Whether an object is a task."""
    return isinstance(found, Task)


REGISTRY = Registry("task", "--task", TASKS, example="my_task:TASK")
"""Tasks that a user can name, except YAML files and tasks from `TASK_SOURCES`."""
TASK_SOURCES = "c4.task_sources"
"""Entry-point group of functions that make a task from a prefixed name, as in `lm-eval:gsm8k`."""
PLAIN_NAME = re.compile(r"[A-Za-z0-9][\w.:+-]{0,99}")
"""Allowed names of user-defined tasks; folders are named after them."""
OWN_TASK = "one of your own: path/to/file.py:object, module:object or path/to/file.yaml"
"""How a user-defined task is named, for messages."""


def find_task(name: str) -> Task:
    """The task that a user named: built in, a YAML file, lm-eval's, or an object in Python code.

    This runs the code of a task that is a Python object or comes from a task source.
    """
    if name in TASKS:
        return TASKS[name]
    prefix, colon, _ = name.partition(":")
    if points := list(entry_points(group=TASK_SOURCES, name=prefix) if colon else ()):
        task = _task_from_source(points[0], name)
    elif _is_yaml(name):
        from c4.tasks.yaml_tasks import load_yaml_task

        task = load_yaml_task(name)
    elif REGISTRY.knows(name):
        task = _task_from_code(name)
    else:
        raise unknown_task(name, REGISTRY.names)
    check_name(task)
    return task


def _task_from_source(point: EntryPoint, name: str) -> Task:
    source = load_offered("task source", point)
    with naming_failures(f"the task source {point.name} fails"):
        task = source.found(name.partition(":")[2])
    if not is_task(task):
        raise ConfigError(f"{name} is no task: its source must return a c4.tasks.Task")
    if task.is_own:  # the source did not set a definition
        task = replace(task, definition={"task": task.name, **source.identity, **task.definition})
    return task


def _task_from_code(name: str) -> Task:
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
    if isinstance(rows := plugin.found.rows, str | Path):
        module = sys.modules.get(getattr(plugin.found.read, "__module__", ""))
        folder = Path(getattr(module, "__file__", None) or "").parent
        guarded["rows"] = find_beside(folder, str(rows))
    return replace(plugin.found, definition=definition, fixed_shape=fixed, **guarded)


def find_beside(folder: Path, name: str) -> Path:
    """Path of a file that a task names: beside the task's file, else in the working directory."""
    beside = folder / user_path(name)
    return beside if exists(beside) else user_path(name)


def unknown_task(name: str, known: Iterable[str]) -> ConfigError:
    """The error for an unknown task, with the nearest names."""
    return unknown_object("task", name, known, also=OWN_TASK)


def names_task(name: str) -> bool:
    """Whether `find_task` can look up a name: a known one, a file, or one with a colon."""
    return REGISTRY.knows(name) or _is_yaml(name)


def _is_yaml(name: str) -> bool:
    return name.endswith((".yaml", ".yml"))


def check_name(task: Task) -> None:
    """Refuse a user-defined task with a built-in task's name, or a name that no folder can have."""
    if task.name in TASKS:
        raise ConfigError(f"the task {task.name} would pass for c4's own; give it another name")
    if not PLAIN_NAME.fullmatch(task.name):
        raise ConfigError(
            f"{task.name!r} cannot be a task's name: letters, digits, dots, dashes and underscores"
        )
