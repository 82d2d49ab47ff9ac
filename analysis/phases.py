"""Exits of gates against stabilization: data of the phase diagram and of the gates figure."""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import polars as pl

from c4.analysis.cohorts import PLACE, cohort_columns, held_out
from c4.analysis.stabilization import settled_step
from c4.gates.candidates import CandidateReader
from c4.gates.gate import Gate
from c4.gates.signals import are_premature, stabilization_step
from c4.replay.exits import exits
from c4.replay.pools import SET_ASIDE, Pools
from c4.store.runs import Run

PHASES = pl.Schema(
    {
        **PLACE,
        "trajectory": pl.Int32(),
        "pool": pl.Boolean(),  # whether calibration may have seen the example
        "gate": pl.String(),
        "fired": pl.Boolean(),
        "exit": pl.Float64(),  # progress; the end of the decode if the gate never fires
        "stabilization": pl.Float64(),  # s_j; null if the answer never settles
        "premature": pl.Boolean(),  # fired before s_j; null if the answer never settles
        "early_by": pl.Float64(),  # s_j minus exit, in progress; null if not premature
    }
)
"""One row per trajectory and gate."""

SIGNALS = ("gap", "confidence", "entropy")
GATE_SIGNALS = pl.Schema(
    {
        **PLACE,
        "pool": pl.Boolean(),  # whether calibration may have seen the examples
        "kind": pl.String(),  # course: per step of the cohort; trigger: at an exit; settled: at s_j
        "gate": pl.String(),  # the gate that triggered; null for other kinds
        "trajectory": pl.Int32(),  # null for a course
        "progress": pl.Float64(),
        "signal": pl.String(),  # gap, confidence or entropy: mean over the task's region
        "value": pl.Float64(),  # for a course, the median
        "low": pl.Float64(),  # `low` and `high`: quartiles of a course, otherwise null
        "high": pl.Float64(),
    }
)


def phase_table(run: Run, gates: Mapping[str, Gate], pools: Pools = SET_ASIDE) -> pl.DataFrame:
    """Exit progress against stabilization, per trajectory and gate. See `PHASES`.

    Grades nothing, and reads cells only if a gate needs them.
    """
    rows = [PHASES.to_frame()]
    fired, budget = pl.col("exit_step") > 0, run.shape.budget
    columns = {
        **cohort_columns(run, pools),
        "fired": fired,
        "exit": pl.when(fired).then("exit_step").otherwise("last") / budget,
        "stabilization": pl.col("settled") / budget,
    }
    early_by = pl.when("premature").then(pl.col("stabilization") - pl.col("exit"))
    for _, found, stops in exits(run, gates):
        s = found.signals
        for name, steps in stops.items():
            frame = pl.DataFrame(
                {
                    "trajectory": found.trajectory,
                    "exit_step": steps,
                    "settled": settled_step(s),
                    "last": s.steps,
                    "premature": are_premature(steps, stabilization_step(s), s.steps),
                },
                schema_overrides={"premature": pl.Boolean()},
            )
            frame = frame.with_columns(**columns, gate=pl.lit(name)).with_columns(early_by=early_by)
            rows.append(frame.select(pl.col(c).cast(kind) for c, kind in PHASES.items()))
    return pl.concat(rows)


def phase_summary(phases: pl.DataFrame) -> pl.DataFrame:
    """Per cohort and gate: shares of fired and premature exits, and mean progress.

    `premature` is a share of the trajectories whose answer settles; `never` counts the others.
    """
    keys = ["model", "task", "family", "cohort", "pool", "gate"]
    return phases.group_by(keys, maintain_order=True).agg(
        n=pl.len(),
        fired=pl.col("fired").mean(),
        exit=pl.col("exit").mean(),
        stabilization=pl.col("stabilization").mean(),
        never=pl.col("premature").null_count(),
        premature=pl.col("premature").mean(),
        early_by=pl.col("early_by").mean(),
    )


def gate_signals(
    runs: Sequence[Run], gates: Mapping[str, Gate], pools: Pools = SET_ASIDE
) -> pl.DataFrame:
    """The course of gap, confidence and entropy, and their values where gates trigger.

    See `GATE_SIGNALS`. Keeps in memory a few numbers per step and trajectory, and one part's cells.

    Args:
        runs: recordings of one cohort. Examples that calibration may have seen are left out if
            there are others; a trajectory that is in two recordings counts once.
    """
    steps = [frame for run in runs for frame in _region_means(run)]
    seen = pl.concat(steps).unique(("trajectory", "step"), keep="first", maintain_order=True)
    seen = held_out(seen.with_columns(**cohort_columns(runs[0], pools)))
    moments = [frame for run in runs for frame in _moments(run, gates)]
    there = pl.concat(moments).unique(("kind", "gate", "trajectory"), maintain_order=True)
    frames = []
    for signal in SIGNALS:
        values = seen.with_columns(value=signal, signal=pl.lit(signal)).drop(SIGNALS)
        frames.append(_course(values))
        for kind, gate in [*(("trigger", gate) for gate in gates), ("settled", None)]:
            of_kind = there.filter(kind=kind).filter(pl.col("gate").eq_missing(pl.lit(gate)))
            at = ["trajectory", "step"]
            frames.append(values.join(of_kind, on=at, maintain_order="left"))
    progress = pl.col("step") / runs[0].shape.budget
    found = pl.concat(frames, how="diagonal").with_columns(progress=progress)
    return found.select(pl.col(name).cast(kind) for name, kind in GATE_SIGNALS.items())


def _region_means(run: Run) -> Iterator[pl.DataFrame]:
    """Signals averaged over the task's region, a row per trajectory and step."""
    region = CandidateReader(run.task, run.vocabulary, run.shape.length, run.reading).region
    for part in run.parts:
        for numbers, cells in run.read_batches(part):
            means = {
                name: getattr(cells, name)[..., region].mean(axis=-1, dtype=np.float64)
                for name in SIGNALS
            }  # (n, T) each
            count = means["gap"].shape[1]
            columns = {
                "trajectory": np.repeat(np.array(numbers, dtype=np.int32), count),
                "step": np.tile(np.arange(1, count + 1, dtype=np.int32), len(numbers)),
            }
            yield pl.DataFrame(columns | {name: mean.ravel() for name, mean in means.items()})


def _moments(run: Run, gates: Mapping[str, Gate]) -> Iterator[pl.DataFrame]:
    """Yield the steps at which gates stop each trajectory and at which it settles; 0 if never."""
    for _, found, stops in exits(run, gates):
        steps: list[tuple[str, str | None, pl.Series]]
        steps = [("trigger", gate, pl.Series(stopped)) for gate, stopped in stops.items()]
        steps.append(("settled", None, settled_step(found.signals).fill_null(0)))
        for kind, gate, column in steps:
            frame = pl.DataFrame({"trajectory": found.trajectory, "step": column.cast(pl.Int32)})
            yield frame.with_columns(kind=pl.lit(kind), gate=pl.lit(gate, dtype=pl.String))


def _course(values: pl.DataFrame) -> pl.DataFrame:
    """The median and the quartiles of a signal at every step."""
    quartiles = [
        (step, *np.quantile(rows["value"], [0.25, 0.5, 0.75]))
        for (step,), rows in values.group_by("step")
    ]
    schema = {"step": pl.Int32, "low": pl.Float64, "value": pl.Float64, "high": pl.Float64}
    course = pl.DataFrame(sorted(quartiles), schema, orient="row")
    place = values.head(1).drop("trajectory", "step", "value")
    return place.with_columns(kind=pl.lit("course")).join(course, how="cross")
