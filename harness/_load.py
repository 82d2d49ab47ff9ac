"""Reaching the harness: its tasks are found here, and its failures put in words."""

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from c4.errors import C4Error, ConfigError, did_you_mean, failure, shortened

INSTALL = "pip install 'c4-dlm[lm-eval]'"
GENERATES = "generate_until"
"""The kind of tasks that let a model write text; the others score likelihoods."""
NO_LIKELIHOODS = (
    "scores likelihoods of given texts, and a masked diffusion model has none that are exact; only "
    f"tasks of the kind {GENERATES} can be decoded; see: c4 tasks --lm-eval"
)


@cache
def task_manager() -> Any:
    """The harness's index of tasks. Building it takes some seconds, so it is built once."""
    try:
        from lm_eval.tasks import TaskManager
    except ImportError as error:
        raise ConfigError(
            f"lm-evaluation-harness is needed for this: {INSTALL} ({error})"
        ) from error
    logging.getLogger("lm_eval").setLevel(logging.ERROR)
    return TaskManager()


def load_task(name: str) -> Any:
    """A task of the harness by its name, or by the path of its YAML file. Its code is run."""
    is_file = name.endswith((".yaml", ".yml"))
    if is_file and not Path(name).is_file():
        raise ConfigError(f"lm-eval:{shortened(name)}: no such file")
    manager = _manager_without_tasks() if is_file else task_manager()
    if not is_file:
        _require_known(name, manager)
    with harness_errors(f"lm-eval:{name}"):
        found = manager.load([name])["tasks"]
    if len(found) != 1:
        some = ", ".join(sorted(found)[:5])
        raise ConfigError(f"lm-eval:{name} is a group of {len(found)} tasks; name one: {some}")
    (task,) = found.values()
    return task


@cache
def _manager_without_tasks() -> Any:
    try:
        from lm_eval.tasks import TaskManager
    except ImportError as error:
        raise ConfigError(
            f"lm-evaluation-harness is needed for this: {INSTALL} ({error})"
        ) from error
    logging.getLogger("lm_eval").setLevel(logging.ERROR)
    return TaskManager(include_defaults=False)


def _require_known(name: str, manager: Any) -> None:
    if name not in manager.task_index:
        near = did_you_mean(name, manager.all_subtasks)
        raise ConfigError(
            f"lm-eval has no task named {shortened(name)!r}{near and f'; {near}'} "
            "(c4 tasks --lm-eval lists those that can be recorded)"
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
    if task.OUTPUT_TYPE != GENERATES:
        raise ConfigError(f"lm-eval:{name} {NO_LIKELIHOODS}")
    if _runs_programs(task):
        raise ConfigError(
            f"lm-eval:{name} runs programs that the model wrote, and the harness does not isolate "
            "them; c4's own code tasks are graded in a sandbox: --task humaneval, --task mbpp"
        )
    config = task.config
    if getattr(config, "doc_to_image", None) or getattr(config, "doc_to_audio", None):
        raise ConfigError(f"lm-eval:{name} asks about images or sounds, and c4 decodes text")


def _runs_programs(task: Any) -> bool:
    metrics = getattr(task, "_metric_fn_list", {})
    named = any("pass_at_k" in str(name) or "code_eval" in str(name) for name in metrics)
    return named or bool(getattr(task, "UNSAFE_CODE", False)) or bool(task.config.unsafe_code)


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
