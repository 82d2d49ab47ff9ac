"""Where gates stop against where answers settle: the phase diagram, and what gates saw."""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from c4.analysis.cohorts import PLACE, cohort_columns, held_out
from c4.analysis.stabilization import settled_step
from c4.gates.candidates import CandidateReader
from c4.gates.gate import Gate
from c4.gates.run_signals import RunSignals
from c4.gates.signals import are_premature, stabilization_step
from c4.replay.exits import exits
from c4.replay.pools import SET_ASIDE, Pools
from c4.store.runs import Run

PHASES = pl.Schema(
    {
        **PLACE,
        "trajectory": pl.Int32(),
        "pool": pl.Boolean(),  # calibration may have seen the example
        "gate": pl.String(),
        "fired": pl.Boolean(),
        "exit": pl.Float64(),  # progress; the decode's end where the gate never fires
        "stabilization": pl.Float64(),  # s_j; null where the answer never settles
        "premature": pl.Boolean(),  # fired before it; null where the answer never settles
        "early_by": pl.Float64(),  # how much before, in progress; null where not premature
    }
)
"""One row per trajectory and gate."""

SIGNALS = ("gap", "confidence", "entropy")
GATE_SIGNALS = pl.Schema(
    {
        **PLACE,
        "pool": pl.Boolean(),  # calibration may have seen the examples
        "kind": pl.String(),  # course: the cohort's, per step; trigger: an exit; settled: at s_j
        "gate": pl.String(),  # of a trigger
        "trajectory": pl.Int32(),  # null in a course
        "progress": pl.Float64(),
        "signal": pl.String(),  # gap, confidence or entropy: mean over the task's region
        "value": pl.Float64(),  # of a course: the median
        "low": pl.Float64(),  # of a course: the quartiles
        "high": pl.Float64(),
    }
)


def phase_table(run: Run, gates: Mapping[str, Gate], pools: Pools = SET_ASIDE) -> pl.DataFrame:
    """Exit progress against stabilization, per trajectory and gate. See `PHASES`.

    Nothing is graded, and no cells are read unless a gate wants them.
    """
    rows = [PHASES.to_frame()]
    for _, signals, stops in exits(run, gates):
        for name, steps in stops.items():
            frame = _phases(run, signals, steps)
            frame = frame.with_columns(**cohort_columns(run, pools), gate=pl.lit(name))
            rows.append(frame.select(pl.col(c).cast(kind) for c, kind in PHASES.items()))
    return pl.concat(rows)


def _phases(run: Run, part: RunSignals, steps: npt.NDArray[np.int32]) -> pl.DataFrame:
    budget, signals = run.shape.budget, part.signals
    frame = pl.DataFrame(
        {
            "trajectory": part.trajectory,
            "exit_step": steps,
            "settled": settled_step(signals),
            "last": signals.steps,
            "premature": are_premature(steps, stabilization_step(signals), signals.steps),
        },
        schema_overrides={"premature": pl.Boolean()},
    )
    fired = pl.col("exit_step") > 0
    settled = pl.col("settled")
    frame = frame.with_columns(
        fired=fired,
        exit=pl.when(fired).then(pl.col("exit_step")).otherwise(pl.col("last")) / budget,
        stabilization=settled / budget,
    )
    early_by = pl.when("premature").then(pl.col("stabilization") - pl.col("exit"))
    return frame.with_columns(early_by=early_by)


def phase_summary(phases: pl.DataFrame) -> pl.DataFrame:
    """Per cohort and gate: what share fired, was premature, and by how much.

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


class RegionSignals(NamedTuple):
    """Gap, confidence and entropy averaged over the task's region. (n, T) each."""

    trajectory: npt.NDArray[np.int32]
    gap: npt.NDArray[np.float64]
    confidence: npt.NDArray[np.float64]
    entropy: npt.NDArray[np.float64]


def region_signals(run: Run) -> Iterator[RegionSignals]:
    """The signals in the region that margin gates look at, part by part."""
    reader = CandidateReader(run.task, run.vocabulary, run.shape.length, run.reading)
    for part in run.parts:
        for numbers, cells in run.read_batches(part):
            means = (
                getattr(cells, name)[..., reader.region].mean(axis=-1, dtype=np.float64)
                for name in SIGNALS
            )
            yield RegionSignals(np.array(numbers, dtype=np.int32), *means)


def gate_signals(
    runs: Sequence[Run], gates: Mapping[str, Gate], pools: Pools = SET_ASIDE
) -> pl.DataFrame:
    """The course of gap, confidence and entropy, and their values where gates trigger.

    See `GATE_SIGNALS`. Holds a number per step and trajectory, never the cells of more than a part.

    Args:
        runs: recordings of one cohort. Examples that calibration may have seen are left out where
            there are others, and what stands in two of them counts once.
    """
    means = [m for run in runs for m in region_signals(run)]
    labels, rows = _labels(runs[0], np.concatenate([m.trajectory for m in means]), pools)
    numbers = labels["trajectory"].to_list()
    stopped, settled = _moments(runs, gates)
    frames = [GATE_SIGNALS.to_frame()]
    for signal in SIGNALS:
        course = _stack([getattr(m, signal) for m in means])[rows]  # (n, T)
        frames.append(_labelled(labels, _course(course), signal, "course"))
        for gate in gates:
            frame = _at_moments(course, numbers, stopped[gate])
            frames.append(_labelled(labels, frame, signal, "trigger", gate))
        frame = _at_moments(course, numbers, settled)
        frames.append(_labelled(labels, frame, signal, "settled"))
    progress = pl.col("progress") / runs[0].shape.budget
    return pl.concat(frames).with_columns(progress)


def _labels(
    run: Run, numbers: npt.NDArray[np.int32], pools: Pools
) -> tuple[pl.DataFrame, list[int]]:
    """The trajectories that are shown, their cohort columns, and their rows."""
    frame = pl.DataFrame({"trajectory": numbers}).with_row_index("row")
    frame = frame.with_columns(**cohort_columns(run, pools))
    frame = held_out(frame.unique("trajectory", keep="first", maintain_order=True))
    return frame.drop("row"), frame["row"].to_list()


def _stack(parts: list[npt.NDArray[np.float64]]) -> npt.NDArray[np.float64]:
    """Stack the trajectories of all parts; steps that a trajectory lacks are NaN."""
    steps = max(part.shape[1] for part in parts)
    stacked = np.full((sum(map(len, parts)), steps), np.nan)
    start = 0
    for part in parts:
        stacked[start : start + len(part), : part.shape[1]] = part
        start += len(part)
    return stacked


def _moments(
    runs: Sequence[Run], gates: Mapping[str, Gate]
) -> tuple[dict[str, dict[int, int]], dict[int, int]]:
    """The steps at which gates stop each trajectory and at which it settles; 0 means never."""
    stopped: dict[str, dict[int, int]] = {name: {} for name in gates}
    settled: dict[int, int] = {}
    for _, signals, stops in (found for run in runs for found in exits(run, gates)):
        numbers = signals.trajectory.tolist()
        for name, steps in stops.items():
            stopped[name] |= dict(zip(numbers, steps.tolist(), strict=True))
        settles = settled_step(signals.signals).fill_null(0)
        settled |= dict(zip(numbers, settles.to_list(), strict=True))
    return stopped, settled


def _course(values: npt.NDArray[np.float64]) -> pl.DataFrame:
    low, median, high = np.nanquantile(values, [0.25, 0.5, 0.75], axis=0)
    steps = np.arange(1, values.shape[1] + 1, dtype=np.float64)
    return pl.DataFrame({"progress": steps, "value": median, "low": low, "high": high})


def _at_moments(
    values: npt.NDArray[np.float64], numbers: Sequence[int], moments: Mapping[int, int]
) -> pl.DataFrame:
    """A signal's value at a moment of each trajectory that has this moment."""
    happened = [(i, number) for i, number in enumerate(numbers) if moments[number]]
    return pl.DataFrame(
        {
            "trajectory": [number for _, number in happened],
            "progress": [moments[number] for _, number in happened],
            "value": [float(values[i, moments[number] - 1]) for i, number in happened],
        },
        schema={"trajectory": pl.Int32(), "progress": pl.Float64(), "value": pl.Float64()},
    )


def _labelled(
    labels: pl.DataFrame, frame: pl.DataFrame, signal: str, kind: str, gate: str | None = None
) -> pl.DataFrame:
    shared = labels.drop("trajectory").row(0, named=True)
    shared |= {"kind": kind, "gate": gate, "signal": signal}
    frame = frame.with_columns(**{name: pl.lit(value) for name, value in shared.items()})
    return frame.select(
        (pl.col(name) if name in frame.columns else pl.lit(None)).cast(kind_).alias(name)
        for name, kind_ in GATE_SIGNALS.items()
    )
