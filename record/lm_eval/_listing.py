"""Which tasks of the harness can be recorded."""

import fnmatch
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from c4.lm_eval._load import refusal, task_manager


@dataclass(frozen=True)
class ListedTask:
    """A task of the harness that writes text."""

    name: str
    dataset: str
    num_fewshot: int
    filters: tuple[str, ...]
    """The first of them reads the answers."""


def list_tasks(pattern: str = "*") -> Iterator[ListedTask]:
    """The tasks that can be recorded, of those whose names match a pattern such as `gsm8k*`.

    Nothing is loaded but their YAML files, and no code of theirs is run. Tasks that score
    likelihoods and tasks that run programs are left out; so are those that are Python classes, of
    which only loading tells what they do.
    """
    wanted = pattern if any(sign in pattern for sign in "*?[") else f"*{pattern}*"
    index = task_manager().task_index
    for name in sorted(fnmatch.filter(task_manager().all_subtasks, wanted)):
        config = index[name].cfg or {}
        if "class" not in config and refusal(config) is None:
            yield _listed(name, config)


def _listed(name: str, config: dict[str, Any]) -> ListedTask:
    where = " ".join(str(config[k]) for k in ("dataset_path", "dataset_name") if config.get(k))
    filters = tuple(str(one.get("name")) for one in config.get("filter_list") or ())
    return ListedTask(name, where, int(config.get("num_fewshot") or 0), filters or ("none",))
