"""All tasks by name: c4's own, and those that users bring along."""

import logging
import re
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any

from c4.errors import RAISED, C4Error, ConfigError, failure
from c4.errors.system import exists, user_path
from c4.errors.text import differences
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
WORDING = ("prompt", "prompt_sha256")
"""What a definition says of `--prompt`: answers are read and graded alike under every wording."""
OF_EVALUATION = "prompts"
"""What the definition of a task says whose prompts an evaluation in the harness has made."""
log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Known:
    """A task that is not c4's own, and from where this process knows it."""

    task: Task
    typed: str | None = None
    """How a user named it; None if nobody has."""
    is_learned: bool = False
    """Whether a recording told it, which may be anybody's."""
    folder: Path = field(default_factory=Path.cwd)
    """Where this process was then: workers serve commands of other folders one after the other."""

    def is_from(self, source: EntryPoint) -> bool:
        """Whether a task source has made it, or who has the task at hand."""
        named_otherwise = self.typed is not None and self.typed.partition(":")[0] != source.name
        return not self.is_learned and not named_otherwise

    def is_beside(self, typed: str) -> bool:
        """Whether the user has named it so that another name stands for another task."""
        return self.typed not in (None, typed) and self.folder == Path.cwd()


_NAMED: dict[str, Known] = {}
"""Tasks that are not c4's own and that this process knows, by what their runs go by."""


def forget_tasks() -> None:
    """Forget every task that was named or that a recording told, as in a new process."""
    _NAMED.clear()


def begin_command() -> None:
    """Let names stand for other tasks from now on: no other command is named beside this one."""
    _NAMED.update({name: replace(known, typed=None) for name, known in _NAMED.items()})


def find_task(name: str) -> Task:
    """The task that a user names; unless it is c4's own or a YAML file, code is run.

    From then on, `get_task` knows it by the name that its runs go by. If its file was edited since
    it was named, the edited task takes its place: what was opened before has to be opened again.
    """
    if name in TASKS:
        return TASKS[name]
    known, source = _NAMED.get(name), _source_of(name)
    if source is not None:
        if known is not None and known.is_from(source):
            return known.task
        return _name_task(_task_from_source(source, name), name)
    if _is_yaml(name):
        from c4.tasks._yaml import load_yaml_task

        return _name_task(load_yaml_task(name), name)
    if REGISTRY.knows(name):
        return _name_task(_task_from_code(name), name)
    if known is None:
        raise unknown_task(name, REGISTRY.names)
    return known.task


def _source_of(name: str) -> EntryPoint | None:
    """What makes tasks of names that begin as this one does, if an installed package has it."""
    prefix, colon, _ = name.partition(":")
    points = entry_points(group=TASK_SOURCES, name=prefix) if colon else ()
    return next(iter(points), None)


def _task_from_source(point: EntryPoint, name: str) -> Task:
    source = load_offered("task source", point)
    try:
        task = source.found(name.partition(":")[2])
    except (C4Error, MemoryError):
        raise
    except RAISED as error:
        raise ConfigError(f"the task source {point.name} fails: {failure(error)}") from error
    if not is_task(task):
        raise ConfigError(f"{name} is no task: its source must return a c4.tasks.Task")
    if task.is_own:  # it does not say what it was made of
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
    guarded["rows"] = _beside(plugin.found)
    return replace(plugin.found, definition=definition, fixed_shape=fixed, **guarded)


def _beside(task: Task) -> Any:
    """The rows of a task; a file stands beside the task's own, or where the command is called."""
    if not isinstance(task.rows, str | Path):
        return task.rows
    module = sys.modules.get(getattr(task.read, "__module__", ""))
    beside = Path(getattr(module, "__file__", None) or "").parent / user_path(str(task.rows))
    return beside if exists(beside) else task.rows


def unknown_task(name: str, known: Iterable[str]) -> ConfigError:
    """The error for a task that there is not, with the nearest names."""
    return unknown_object("task", name, known, also=OWN_TASK)


def names_task(name: str) -> bool:
    """Whether a text is the name of a task, or could be: a file, or something with a colon."""
    return knows_task(name) or REGISTRY.knows(name) or _is_yaml(name)


def _is_yaml(name: str) -> bool:
    return name.endswith((".yaml", ".yml"))


def adopt_task(task: Task) -> Task:
    """Let `get_task` know a task at hand, in the place of any other of its name."""
    _check_name(task)
    _NAMED[task.name] = Known(task)
    return task


def _name_task(task: Task, typed: str) -> Task:
    """Let `get_task` know a task that a user named; another of its name would be mistaken for it.

    The same name typed again is of a file that was edited since.
    """
    _check_name(task)
    known = _NAMED.get(task.name)
    if known is not None and _made_of(known.task) != _made_of(task):
        if known.is_beside(typed):
            raise ConfigError(
                f"--task {typed}: results of it and of {known.typed} would both go by {task.name}; "
                "rename one of the tasks"
            )
        was_told = known.is_learned and known.task.definition != task.definition
        if known.typed == typed or was_told:
            log.warning("%s has changed; open again what was recorded of %s", typed, task.name)
    _NAMED[task.name] = Known(task, typed)
    return task


def _made_of(task: Task) -> tuple[Any, ...]:
    """What tells two tasks of one name apart: what they say, and the file of their rows."""
    return task.definition, task.rows.resolve() if isinstance(task.rows, Path) else None


def _check_name(task: Task) -> None:
    if task.name in TASKS:
        raise ConfigError(f"the task {task.name} would pass for c4's own; give it another name")
    if not PLAIN_NAME.fullmatch(task.name):
        raise ConfigError(
            f"{task.name!r} cannot be a task's name: letters, digits, dots, dashes and underscores"
        )


def learn_task(name: str, definition: Mapping[str, Any], rows: str | None = None) -> None:
    """Let `get_task` know a task of which a recording says everything, because it was a YAML file.

    Only data is read. A task that the user has named comes first, if it is the one that was
    recorded: otherwise some answers would be graded as before and others by what it has become.

    Args:
        rows: where the user had its rows, of which the definition holds no more than a name.
    """
    recorded = {key: value for key, value in definition.items() if key not in WORDING}
    fields = recorded.get("fields")
    if "fields" in recorded and (
        not isinstance(fields, Mapping) or str(fields.get("task")) != name
    ):
        raise ConfigError(f"its task is {name}, but the definition it holds is of another task")
    if isinstance(fields, Mapping):
        from c4.tasks._yaml import kept_fields, task_from_fields

        recorded["fields"] = fields = kept_fields(fields)
        if name not in TASKS and name not in _NAMED:
            task = task_from_fields(fields, f"the task {name}", Path(), rows)
            _check_name(task)
            _NAMED[name] = Known(task, is_learned=True)
            return
    if recorded:  # else nothing is said but the name
        _require_same(name, recorded)


def _require_same(name: str, recorded: Mapping[str, Any]) -> None:
    """Refuse a recording of another task than the one that is known by its name."""
    if name in TASKS:
        raise ConfigError(f"its task {name} is not c4's own, but another of that name")
    known = _NAMED.get(name)
    if known is None:
        return
    there, here = dict(recorded), dict(known.task.definition)
    if OF_EVALUATION in there:  # made of requests: it knows nothing of a file
        here = {key: value for key, value in here.items() if key in there}
        there = {key: value for key, value in there.items() if key in here}
    differ = "; ".join(differences(there, here))
    if not differ:
        return
    if known.is_learned:
        raise ConfigError(
            f"its task {name} is defined otherwise than in another recording ({differ}); read one "
            "of them at a time"
        )
    if there.keys() != here.keys() or there.get("task") != here.get("task"):
        raise ConfigError(
            f"its task {name} is another one than {known.typed or name} ({differ}); name it as it "
            "was recorded"
        )
    raise ConfigError(
        f"made before the source of its task {name} was edited ({differ}); bring the old source "
        "back, or record again with --out for a place of its own"
    )


def knows_task(name: str) -> bool:
    """Whether recordings of a task can be read: it is c4's own, a YAML file's, or was named."""
    return name in TASKS or name in _NAMED


def get_task(name: str) -> Task:
    """The task of this name; an unknown name is an error that lists the nearest ones."""
    if name in TASKS:
        return TASKS[name]
    if name in _NAMED:
        return _NAMED[name].task
    raise unknown_task(name, TASKS)
