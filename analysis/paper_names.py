"""Names as the paper writes them, and the order in which tasks and methods are listed."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import polars as pl

from c4.plugins import canonical_name
from c4.store.labels import BASELINE, Label
from c4.tasks import TASKS

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
"""Names of the methods, in the order in which they are listed."""
METHOD_LADDER = ("baseline", "confidence", "stability", "cvee", "cctc-core", "cctc", "c4")
"""Methods of the ablation; each adds one component to the one before."""
CACHE_LABELS = {"dual": " + DualCache", "prefix": " + prefix cache"}
"""Suffixes of method names for runs with a cache."""


def task_label(task: str) -> str:
    return TASK_LABELS.get(task, task)


def model_label(model: str) -> str:
    """Model name without the organisation of its hub id."""
    return model.rpartition("--")[2]


def is_of(labels: pl.Series, methods: Collection[str]) -> pl.Series:
    """Whether each label names one of these methods or a variant of one."""
    return labels.is_in([x for x in labels.unique() if Label.parse(x).method in methods])


def method_label(method: str) -> str:
    """Name of a method, followed by its changed settings: `c4,H=2` becomes `C4, H=2`."""
    label = Label.parse(method)
    name = METHOD_LABELS.get(label.kind, label.kind) + label.method.removeprefix(label.kind)
    settings = ""
    for change in label.changes:
        if change.part is None and change.name == "cache" and change.value in CACHE_LABELS:
            name += CACHE_LABELS[str(change.value)]
        else:
            settings += f", {change}"
    return name + settings


def method_kind(label: str) -> str:
    """Method or gate that a label names, without changed settings or folders."""
    return Label.parse(label).kind


def method_typed(name: str) -> str:
    """Label of a method's results from the name a user typed, without folders of plug-in files."""
    return "+".join(canonical_name(piece) for piece in name.split("+"))


def spell_shape(shape: Mapping[str, Any]) -> str:
    """Format length, budget and block length with the paper's letters."""
    return f"L={shape['length']} T={shape['budget']} B={shape['block_length']}"


TASK_ORDER: ContextVar[Sequence[str]] = ContextVar("TASK_ORDER", default=())
METHOD_ORDER: ContextVar[Sequence[str]] = ContextVar("METHOD_ORDER", default=())
"""Tasks and methods to list first, chosen by the user; the others follow in the usual order."""


@contextmanager
def listed_in(tasks: Sequence[str], methods: Sequence[str]) -> Iterator[None]:
    """Within this context, `in_order` lists these tasks and methods first."""
    asked = [BASELINE, *map(method_typed, methods)] if methods else []
    first, second = TASK_ORDER.set(tasks), METHOD_ORDER.set(asked)
    try:
        yield
    finally:
        TASK_ORDER.reset(first)
        METHOD_ORDER.reset(second)


def in_order(frame: pl.DataFrame, *more: str, before: Sequence[str] = ()) -> pl.DataFrame:
    """Sort by model, then by task and method in listing order, then by other columns.

    Args:
        before: columns to sort by before the method.
    """
    keys = [pl.col("model")] if "model" in frame.columns else []
    keys += _places(frame, "task", str, [*dict.fromkeys([*TASK_ORDER.get(), *TASKS])])
    keys += [pl.col(column) for column in before]
    methods = [*dict.fromkeys([*METHOD_ORDER.get(), *METHOD_LABELS])]
    keys += _places(frame, "method", method_kind, methods)
    keys += [pl.col(column) for column in more]
    return frame.sort(keys, maintain_order=True)


def _places(
    frame: pl.DataFrame, column: str, name: Callable[[str], str], order: list[str]
) -> list[pl.Expr]:
    """Keys that sort by position in a list; values not listed come last, by name."""
    if column not in frame.columns:
        return []
    names = {value: name(value) for value in frame[column].drop_nulls().unique()}
    places = {value: order.index(n) for value, n in names.items() if n in order}
    place = pl.col(column).replace_strict(places, default=len(order), return_dtype=pl.Int64)
    return [place, pl.col(column)]
