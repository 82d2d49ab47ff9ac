"""Convert decisions of `replay` in a notebook into the frames that figures draw."""

from collections.abc import Iterable

import polars as pl

from c4.analysis.phases import PHASES
from c4.analysis.stabilization import SETTLING
from c4.errors import ConfigError
from c4.replay.decisions import Split
from c4.tasks import TASKS

DECIDED = (
    *("model", "task", "trajectory", "gate", "split", "fired"),
    *("steps", "budget", "stabilization", "premature"),
)
"""Columns of decisions from which phases are made."""


def as_phases(frame: pl.DataFrame) -> pl.DataFrame:
    """Convert decisions from `replay` into phases; return phases unchanged. See `PHASES`.

    Decisions do not say which examples a task sets aside, so only rows whose `split` is the pool
    count as pool.
    """
    _require_frame(frame)
    if "exit" in frame.columns:
        require_columns(frame, set(PHASES) - {"cohort", "early_by"})
        return frame
    require_columns(frame, DECIDED)
    if "family" not in frame.columns:
        families = {name: str(task.family) for name, task in TASKS.items()}
        for name in frame["task"].unique().sort():
            if name not in families:
                raise ConfigError(
                    f"these decisions do not say which family the task {name} belongs to; draw "
                    "run.phases(…) instead, or give the frame a column family: letters, "
                    "long_reasoning or code"
                )
        frame = frame.with_columns(family=pl.col("task").replace_strict(families))
    phases = frame.with_columns(
        cohort=pl.lit(None),
        pool=(pl.col("split") == Split.POOL).fill_null(value=False),
        exit=pl.col("steps") / pl.col("budget"),
        stabilization=pl.col("stabilization") / pl.col("budget"),
    )
    early_by = pl.when("premature").then(pl.col("stabilization") - pl.col("exit"))
    phases = phases.with_columns(early_by=early_by)
    return phases.select(pl.col(name).cast(kind) for name, kind in PHASES.items())


def as_settling(frame: pl.DataFrame) -> pl.DataFrame:
    """Convert decisions or phases to settling times; return these unchanged. See `SETTLING`.

    Decisions and phases do not say when an answer first appeared. A task counts as pool if all its
    rows do.
    """
    _require_frame(frame)
    if "first_appearance" not in frame.columns:
        phases = as_phases(frame).unique(["model", "task", "trajectory"], maintain_order=True)
        frame = phases.with_columns(first_appearance=pl.lit(None))
    require_columns(frame, SETTLING)
    counts = frame.group_by("model", "task", maintain_order=True).agg(pl.col("cohort").n_unique())
    for model, task, count in counts.iter_rows():
        if count > 1:
            raise ConfigError(
                f"this frame holds {count} cohorts of {task} on {model}, which differ in weights, "
                "examples or shape; draw them one at a time: filter by the column cohort"
            )
    frame = frame.with_columns(pool=pl.col("pool").all().over("model", "task"))
    return frame.select(pl.col(name).cast(kind) for name, kind in SETTLING.items())


def require_columns(frame: pl.DataFrame, names: Iterable[str]) -> None:
    """Raise unless the frame has these columns and at least one row; name what it lacks."""
    _require_frame(frame)
    missing = sorted(set(names) - set(frame.columns))
    if missing:
        raise ConfigError(
            f"this frame cannot be drawn: it has no column {', '.join(missing)}; "
            "docs/notebook.md says which frames each figure takes"
        )
    if frame.is_empty():
        raise ConfigError("this frame has no rows, so there is nothing to draw")


def require_one_trajectory(frame: pl.DataFrame) -> None:
    """Raise if a frame holds more than one decode."""
    decodes = frame.select("model", "task", "trajectory").unique(maintain_order=True).rows()
    if len(decodes) > 1:
        first, second = (f"{number} of {task} on {model}" for model, task, number in decodes[:2])
        raise ConfigError(
            f"this figure shows one trajectory, and the frame holds {len(decodes)}: {first}, "
            f"{second}{', …' if len(decodes) > 2 else ''}; filter by the column trajectory"
        )


def _require_frame(frame: object) -> None:
    if not isinstance(frame, pl.DataFrame):
        raise ConfigError(
            f"a figure is drawn from a Polars DataFrame, not from a {type(frame).__name__}; "
            "lazy frames have collect(), and pl.DataFrame(…) makes one of most others"
        )
