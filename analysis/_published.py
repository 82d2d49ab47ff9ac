"""The paper's numbers, to be put beside one's own."""

from importlib.resources import files

import polars as pl

MODELS = {
    "llada": "llada",
    "LLaDA-8B-Instruct": "llada",
    "dream": "dream",
    "Dream-v0-Instruct-7B": "dream",
}
"""Which published model a recording's is, by its name without the organisation."""


def published(table: str) -> pl.DataFrame:
    """One of the tables in `published/`."""
    text = files("c4.analysis").joinpath("published", f"{table}.csv").read_bytes()
    frame = pl.read_csv(text)
    numbers = [name for name, kind in frame.schema.items() if kind.is_numeric()]
    return frame.with_columns(pl.col(numbers).cast(pl.Float64))


def beside(frame: pl.DataFrame, table: str, keys: list[str]) -> pl.DataFrame:
    """A frame with the published numbers of the same model and keys, named `paper_…`."""
    theirs = published(table)
    numbers = [name for name in theirs.columns if name not in (*keys, "model")]
    theirs = theirs.rename({name: f"paper_{name}" for name in numbers} | {"model": "_model"})
    theirs = theirs.with_columns(pl.col(key).cast(frame.schema[key]) for key in keys)
    known = pl.col("model").str.split("--").list.last()
    frame = frame.with_columns(_model=known.replace_strict(MODELS, default=None))
    return frame.join(
        theirs, on=["_model", *keys], how="left", nulls_equal=False, maintain_order="left"
    ).drop("_model")
