"""Finding and loading harness tasks, with clear errors when the harness fails."""

import fnmatch
import logging
import os
import random
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from c4.errors import C4Error, ConfigError, did_you_mean, failure, shortened

RUNS_PROGRAMS = re.compile(r"pass_?at|pass@|code_eval", re.IGNORECASE)
"""Pattern for names of metrics that run programs."""
RANDOM_SEED, ARRAY_SEED = 0, 1234
"""Seeds that `simple_evaluate` sets for Python's and numpy's random numbers."""
INSTALL = "pip install 'c4-dlm[lm-eval]'"
GENERATES = "generate_until"
"""Output type of tasks in which a model generates text; other types score likelihoods."""
NO_LIKELIHOODS = (
    "scores likelihoods of given texts, and a masked diffusion model has none that are exact; only "
    f"tasks of the kind {GENERATES} can be decoded; see: c4 tasks --lm-eval"
)


@cache
def task_manager(*, with_tasks: bool = True) -> Any:
    """Return the harness's index of tasks, cached because building it takes some seconds.

    Args:
        with_tasks: False for an empty index, which is built fast and can load YAML files.
    """
    try:
        from lm_eval.tasks import TaskManager
    except ImportError as error:
        raise ConfigError(
            f"lm-evaluation-harness is needed for this: {INSTALL} ({error})"
        ) from error
    import datasets

    datasets.disable_progress_bars()
    for name in ("lm_eval", "datasets", "huggingface_hub"):
        logging.getLogger(name).setLevel(logging.ERROR)
    return TaskManager(include_defaults=with_tasks)


@dataclass(frozen=True)
class ListedTask:
    """A harness task that generates text, as a list shows it."""

    name: str
    dataset: str
    num_fewshot: int
    filters: tuple[str, ...]
    """Names of the task's filters; the first one extracts the answers."""


def list_tasks(pattern: str = "*") -> Iterator[ListedTask]:
    """Yield the tasks that can be recorded and whose names match a pattern such as `gsm8k*`.

    Only YAML files are read; no code of a task runs. Tasks that score likelihoods or run programs
    are omitted, and so are Python classes, because one would have to load them to know their type.
    """
    wanted = pattern if any(sign in pattern for sign in "*?[") else f"*{pattern}*"
    index = task_manager().task_index
    for name in sorted(fnmatch.filter(task_manager().all_subtasks, wanted)):
        config = index[name].cfg or {}
        if "class" in config or refusal(config) is not None:
            continue
        where = " ".join(str(config[k]) for k in ("dataset_path", "dataset_name") if config.get(k))
        filters = tuple(str(one.get("name")) for one in config.get("filter_list") or ())
        yield ListedTask(name, where, int(config.get("num_fewshot") or 0), filters or ("none",))


def load_task(place: str) -> Any:
    """Load a harness task by its name or its YAML file. This runs the task's code."""
    is_file = place.endswith((".yaml", ".yml"))
    manager = task_manager(with_tasks=not is_file)
    if is_file:
        place = str(Path(place).expanduser())
        if not Path(place).is_file():
            raise ConfigError(f"lm-eval:{shortened(place)}: no such file")
        with harness_errors(f"lm-eval:{place}"):
            text = Path(place).read_text(encoding="utf-8")
        if re.search(r"^group:", text, re.MULTILINE):
            raise ConfigError(f"lm-eval:{place} is a group of tasks; name the file of one of them")
    elif place not in manager.task_index:
        near = did_you_mean(place, manager.all_subtasks)
        raise ConfigError(
            f"lm-eval has no task named {shortened(place)!r}{near and f'; {near}'} "
            "(c4 tasks --lm-eval lists those that can be recorded; a task of your own is named by "
            "its file: lm-eval:path/to/task.yaml)"
        )
    else:
        _require_single(place, manager.task_index[place])
        _refuse(place, refusal(manager.task_index[place].cfg or {}))  # before any data is fetched
    with harness_errors(f"lm-eval:{place}"):
        (task,) = manager.load([place])["tasks"].values()
    return task


def _require_single(name: str, entry: Any) -> None:
    """Refuse a group or a tag, before the data of all its tasks is fetched."""
    kind = entry.kind.name.lower()
    if kind not in ("group", "tag"):
        return
    listed = sorted(entry.tags) if kind == "tag" else (entry.cfg or {}).get("task") or []
    listed = listed if isinstance(listed, list) else [listed]
    names = [
        str(one.get("task") or one.get("group")) if isinstance(one, dict) else str(one)
        for one in listed
    ]
    shown = ", ".join(names[:5]) + (", …" if len(names) > 5 else "")
    raise ConfigError(f"lm-eval:{name} is a {kind} of {len(names)}; name one task: {shown}")


@contextmanager
def harness_errors(what: str) -> Iterator[None]:
    """Turn errors in the harness, in data sets and in tasks' own code into `ConfigError`."""
    try:
        yield
    except (C4Error, MemoryError):
        raise
    except (Exception, SystemExit) as error:  # some tasks exit if a program is missing
        is_absent = isinstance(error, OSError)  # raised by datasets and the hub's client
        advice = "; is its data set on this machine, or the network up?" if is_absent else ""
        first_line = failure(error).strip().partition("\n")[0]
        raise ConfigError(f"{what}: {first_line}{advice}") from error


def require_recordable(name: str, task: Any) -> None:
    """Refuse a task that cannot be decoded or that would run programs written by the model."""
    config = {key: getattr(task.config, key, None) for key in READ}
    metrics = [{"metric": name} for name in vars(task).get("_metric_fn_list", {})]
    unsafe = config["unsafe_code"] or getattr(task, "UNSAFE_CODE", False)
    found = {"output_type": task.OUTPUT_TYPE, "metric_list": metrics, "unsafe_code": unsafe}
    _refuse(name, refusal(config | found))


READ = ("doc_to_image", "doc_to_audio", "unsafe_code")


def refusal(config: Mapping[str, Any]) -> str | None:
    """Return why a task with this configuration cannot be recorded; None if it can."""
    if config.get("output_type", GENERATES) != GENERATES:
        return NO_LIKELIHOODS
    metrics = [str(one.get("metric")) for one in config.get("metric_list") or ()]
    if config.get("unsafe_code") or any(RUNS_PROGRAMS.search(name) for name in metrics):
        return (
            "runs programs that the model wrote, and the harness does not isolate them; c4's own "
            "code tasks are graded in a sandbox: --task humaneval, --task mbpp"
        )
    if config.get("doc_to_image") or config.get("doc_to_audio"):
        return "asks about images or sounds, and c4 decodes text"
    return None


def _refuse(name: str, why: str | None) -> None:
    if why is not None:
        raise ConfigError(f"lm-eval:{name} {why}")


@contextmanager
def harness_seeds() -> Iterator[None]:
    """Seed random numbers as the harness does to load tasks, and restore their state afterwards."""
    import numpy as np

    before, array_before = random.getstate(), np.random.get_state()
    random.seed(RANDOM_SEED)
    np.random.seed(ARRAY_SEED)
    try:
        yield
    finally:
        random.setstate(before)
        np.random.set_state(array_before)


@contextmanager
def no_programs() -> Iterator[None]:
    """Keep metrics from running a model's programs, even if the environment allows it."""
    name, before = "HF_ALLOW_CODE_EVAL", os.environ.get("HF_ALLOW_CODE_EVAL")
    os.environ[name] = "0"
    try:
        yield
    finally:
        del os.environ[name]
        if before is not None:
            os.environ[name] = before
