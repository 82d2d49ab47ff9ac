"""The paper's numbers, to be shown beside a user's where both measure the same thing."""

from collections.abc import Mapping
from dataclasses import asdict
from importlib.resources import files
from typing import Any

import polars as pl

from c4.analysis.names import model_label, spell_shape
from c4.tasks import get_task
from c4.tasks.examples import EMBEDDED_SOURCE

MODELS = {
    "llada": "llada",
    "LLaDA-8B-Instruct": "llada",
    "dream": "dream",
    "Dream-v0-Instruct-7B": "dream",
}
"""The paper's name of each published model, by its hub name without the organisation."""


def published(table: str) -> pl.DataFrame:
    """One of the tables in `published/`."""
    text = files("c4.analysis").joinpath("published", f"{table}.csv").read_bytes()
    frame = pl.read_csv(text)
    numbers = [name for name, kind in frame.schema.items() if kind.is_numeric()]
    return frame.with_columns(pl.col(numbers).cast(pl.Float64))


def published_model(model: str) -> str | None:
    """The paper's name of a model, or None if the paper does not have it."""
    return MODELS.get(model_label(model))


def unlike_paper(cohort: Mapping[str, Any], *, any_shape: bool = False) -> str | None:
    """Why the paper's numbers cannot be compared with a cohort's, or None if they can.

    Args:
        cohort: model, task, source, length, budget and block_length.
        any_shape: the table has several shapes of a task, each with as many steps as positions.
    """
    if published_model(cohort["model"]) is None:
        return "no model of the paper's"
    if cohort["source"] == EMBEDDED_SOURCE:
        return "problems that c4 generates"
    theirs = {"budget": cohort["length"]} if any_shape else asdict(get_task(cohort["task"]).shape)
    if any(cohort[name] != value for name, value in theirs.items()):
        return f"another shape, {spell_shape(cohort)}"
    return None


def beside(frame: pl.DataFrame, table: str, keys: list[str]) -> pl.DataFrame:
    """A frame with the published numbers of the same model and keys, named `paper_…`.

    Its column `paper` says whose numbers may stand beside a row, and is null where none may.
    """
    theirs = published(table)
    numbers = [name for name in theirs.columns if name not in (*keys, "model")]
    theirs = theirs.rename({name: f"paper_{name}" for name in numbers} | {"model": "paper"})
    theirs = theirs.with_columns(pl.col(key).cast(frame.schema[key]) for key in keys)
    return frame.join(
        theirs, on=["paper", *keys], how="left", nulls_equal=False, maintain_order="left"
    ).drop("paper")
