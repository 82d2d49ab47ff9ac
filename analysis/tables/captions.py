"""Captions: the sentences on the calibration pool and on the published numbers."""

from collections.abc import Iterable

import polars as pl

from c4.analysis._published import beside, published_model, unlike_paper
from c4.analysis.cohorts import pool_note
from c4.analysis.library import Library


def with_pool(caption: str, library: Library, *, every: bool = False) -> str:
    """A caption that says how the cohorts of a table treat the calibration pool."""
    note = pool_note(library.cohorts if every else library.cohorts.filter("main"))
    return f"{caption} ({note})" if note else caption


def with_paper(
    rows: pl.DataFrame,
    caption: str,
    table: str,
    keys: list[str],
    library: Library,
    *,
    any_shape: bool = False,
) -> tuple[pl.DataFrame, str]:
    """Rows with the published numbers where they compare, and the reasons where they do not."""
    shown = library.cohorts.join(rows, on="cohort", how="semi")
    models, reasons = {}, []
    for cohort in shown.iter_rows(named=True):
        why = unlike_paper(cohort, any_shape=any_shape)
        models[cohort["cohort"]] = None if why else published_model(cohort["model"])
        reasons.append((cohort["model"], cohort["task"], why))
    paper = pl.col("cohort").replace_strict(models, default=None, return_dtype=pl.String())
    rows = beside(rows.with_columns(paper=paper), table, keys)
    return rows, with_reasons(caption, reasons)


def with_reasons(caption: str, reasons: Iterable[tuple[str, str, str | None]]) -> str:
    """A caption that lists the models and tasks without published numbers, and why."""
    tasks: dict[tuple[str, str], list[str]] = {}
    for model, task, why in reasons:
        if why:
            tasks.setdefault((model, why), []).append(task)
    told = [f"{', '.join(names)} on {model} ({why})" for (model, why), names in tasks.items()]
    return f"{caption}; without the paper's numbers: {'; '.join(told)}" if told else caption
