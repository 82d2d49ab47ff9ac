"""Names as the paper writes them, and the order in which tasks and methods are listed."""

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from c4.tasks import TASKS, get_task

TASK_LABELS = {
    "mmlu": "MMLU",
    "arc_c": "ARC-C",
    "hellaswag": "HellaSwag",
    "winogrande": "WinoGrande",
    "piqa": "PIQA",
    "truthfulqa": "TruthfulQA",
    "gsm8k": "GSM8K",
    "math": "MATH",
    "svamp": "SVAMP",
    "asdiv": "ASDiv",
    "gsmhard": "GSM-Hard",
    "humaneval": "HumanEval",
    "mbpp": "MBPP",
}
FAMILY_LABELS = {
    "letters": "short answers",
    "long_reasoning": "long reasoning",
    "code": "code",
}
METHOD_LABELS = {
    "baseline": "Baseline",
    "prophet": "Prophet",
    "sched": "SchED",
    "slowfast": "SlowFast",
    "klass": "KLASS",
    "fast-dllm": "Fast-dLLM",
    "wino": "WINO",
    "wino+cvee": "WINO + CVEE",
    "confidence": "confidence only",
    "stability": "stability only",
    "fixed-patience": "fixed patience",
    "cvee": "CVEE",
    "cctc-core": "CCTC, core only",
    "cctc": "CCTC, core then confirm",
    "c4": "C4",
    "progress": "fixed progress",
    "oracle": "oracle",
}
"""In the order in which methods are listed."""
CACHE_LABELS = {"cache=dual": " + DualCache", "cache=prefix": " + prefix cache"}
"""What a method's name gains by a cache."""


def task_label(task: str) -> str:
    return TASK_LABELS.get(task, task)


def model_label(model: str) -> str:
    """A model's name without the organisation that a hub id brings."""
    return model.rpartition("--")[2]


def name_column() -> pl.Expr:
    """The same of the column `method`."""
    return pl.col("method").str.split(",").list.first()


def method_label(method: str) -> str:
    """A method's name; settings of the user's own stay behind it: `c4,H=2` is `C4, H=2`."""
    name, *settings = method.split(",")
    caches = [CACHE_LABELS[word] for word in settings if word in CACHE_LABELS]
    others = [f", {word}" for word in settings if word not in CACHE_LABELS]
    return "".join([METHOD_LABELS.get(name, name), *caches, *others])


def spell_shape(shape: Mapping[str, Any]) -> str:
    """Length, steps and block in the paper's letters."""
    return f"L={shape['length']} T={shape['budget']} B={shape['block_length']}"


def family_of(task: str) -> str:
    return str(get_task(task).family)


def in_order(frame: pl.DataFrame, *more: str, before: Sequence[str] = ()) -> pl.DataFrame:
    """Sorted by model, then task and method in their listed order, then other columns.

    Args:
        before: columns that count more than the method.
    """
    keys = [pl.col("model")] if "model" in frame.columns else []
    keys += _places(frame, "task", pl.col("task"), list(TASKS))
    keys += [pl.col(column) for column in before]
    keys += _places(frame, "method", name_column(), list(METHOD_LABELS))
    keys += [pl.col(column) for column in more]
    return frame.sort(keys, maintain_order=True)


def _places(frame: pl.DataFrame, column: str, name: pl.Expr, order: list[str]) -> list[pl.Expr]:
    """The place of a column's values in their list; what is not listed comes last, by name."""
    if column not in frame.columns:
        return []
    place = name.replace_strict(order, range(len(order)), default=len(order))
    return [place, pl.col(column)]
