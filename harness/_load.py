"""Reaching the harness: its tasks are found here, and its failures put in words."""

import logging
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from c4.errors import C4Error, ConfigError, did_you_mean, failure, shortened

RUNS_PROGRAMS = re.compile(r"pass_?at|pass@|code_eval", re.IGNORECASE)
"""Names of metrics that run programs."""
INSTALL = "pip install 'c4-dlm[lm-eval]'"
GENERATES = "generate_until"
"""The kind of tasks that let a model write text; the others score likelihoods."""
NO_LIKELIHOODS = (
    "scores likelihoods of given texts, and a masked diffusion model has none that are exact; only "
    f"tasks of the kind {GENERATES} can be decoded; see: c4 tasks --lm-eval"
)


@cache
def task_manager(*, with_tasks: bool = True) -> Any:
    """The harness's index of tasks. Building it takes some seconds, so it is built once.

    Args:
        with_tasks: False for an empty one, which loads YAML files at once.
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


def load_task(name: str) -> Any:
    """A task of the harness by its name, or by the path of its YAML file. Its code is run."""
    is_file = name.endswith((".yaml", ".yml"))
    if is_file and not Path(name).is_file():
        raise ConfigError(f"lm-eval:{shortened(name)}: no such file")
    manager = task_manager(with_tasks=not is_file)
    if not is_file:
        _require_known(name, manager)
        _refuse(name, refusal(manager.task_index[name].cfg or {}))  # before any data is fetched
    with harness_errors(f"lm-eval:{name}"):
        found = manager.load([name])["tasks"]
    if len(found) != 1:
        some = ", ".join(sorted(found)[:5])
        raise ConfigError(f"lm-eval:{name} is a group of {len(found)} tasks; name one: {some}")
    (task,) = found.values()
    return task


def _require_known(name: str, manager: Any) -> None:
    if name not in manager.task_index:
        near = did_you_mean(name, manager.all_subtasks)
        raise ConfigError(
            f"lm-eval has no task named {shortened(name)!r}{near and f'; {near}'} "
            "(c4 tasks --lm-eval lists those that can be recorded; a task of your own is named by "
            "its file: lm-eval:path/to/task.yaml)"
        )


@contextmanager
def harness_errors(what: str) -> Iterator[None]:
    """Failures of the harness, of data sets and of tasks' own code, in words."""
    try:
        yield
    except (C4Error, MemoryError):
        raise
    except Exception as error:
        raise ConfigError(f"{what}: {failure(error)}") from error


def require_recordable(name: str, task: Any) -> None:
    """Refuse a task that cannot be decoded, or that would run what a model wrote."""
    config = {key: getattr(task.config, key, None) for key in READ}
    metrics = [{"metric": name} for name in vars(task).get("_metric_fn_list", {})]
    unsafe = config["unsafe_code"] or getattr(task, "UNSAFE_CODE", False)
    found = {"output_type": task.OUTPUT_TYPE, "metric_list": metrics, "unsafe_code": unsafe}
    _refuse(name, refusal(config | found))


READ = ("doc_to_image", "doc_to_audio", "unsafe_code")


def refusal(config: Mapping[str, Any]) -> str | None:
    """Why a task with this configuration cannot be recorded; None if it can."""
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
def no_programs() -> Iterator[None]:
    """Let no metric run a model's program, whatever the environment allows."""
    name, before = "HF_ALLOW_CODE_EVAL", os.environ.get("HF_ALLOW_CODE_EVAL")
    os.environ[name] = "0"
    try:
        yield
    finally:
        del os.environ[name]
        if before is not None:
            os.environ[name] = before
