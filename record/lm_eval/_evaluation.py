"""The evaluation that is asking a model: which of its tasks, and where they come from.

The harness hands a model prompts and names of tasks, and no filters. What gates need is in the
variables of its own functions, which are up the stack while it waits for the answers.
"""

import sys
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any

EVALUATOR = "lm_eval.evaluator"


def running_task(name: str) -> Any:
    """The task of that name in the evaluation under way; None if there is none."""
    for variables in _variables("evaluate"):
        return (variables.get("eval_tasks") or {}).get(name)
    return None


def is_templated() -> bool:
    """Whether the evaluation under way puts prompts through the model's chat template.

    Its cache of requests keeps such prompts, so that the model is not always asked to make them.
    """
    return any(variables.get("apply_chat_template") for variables in _variables("evaluate"))


def overridden_settings() -> set[str]:
    """What an evaluation under way was told to generate otherwise (`gen_kwargs`).

    The harness writes it into the configuration that a task was made of, if it was given as a
    mapping, as its command does with files; what the file said is lost then.
    """
    told = (found.get("gen_kwargs") or () for found in _variables("simple_evaluate"))
    return {name for settings in told for name in settings}


def running_source(name: str) -> str | dict[str, Any] | None:
    """The YAML file or the configuration that a task under way was made of, if it is known."""
    metadata = getattr(getattr(running_task(name), "config", None), "metadata", None) or {}
    source = str(metadata.get("config_source", ""))
    if Path(source).is_file():
        return source
    specs = (spec for found in _variables("simple_evaluate") for spec in found.get("tasks") or ())
    return next((s for s in specs if isinstance(s, dict) and s.get("task") == name), None)


def _variables(function: str) -> Iterator[dict[str, Any]]:
    frame: FrameType | None = sys._getframe()  # noqa: SLF001 - the only way up the stack
    while frame is not None:
        is_harness = frame.f_globals.get("__name__") == EVALUATOR
        if is_harness and frame.f_code.co_name == function:
            yield frame.f_locals
        frame = frame.f_back
