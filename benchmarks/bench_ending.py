"""Which ending should be the default? Cut and skip on every embedded task, CVEE and C4.

    python benchmarks/bench_ending.py [--n 100] [--out bench-out/ending] [--task humaneval ...]

Prints a Markdown table: CVEE replayed over the recorded full decodes, C4 run live under either
ending, each beside the full decode as the same ending reads it. One ending may spend more steps
than the other, so a second table compares CVEE at equal steps: the cheaper ending gets the
patience that makes it as slow as the other. Everything is kept in --out, so an interrupted call
goes on where it stopped and a second one decodes nothing.
"""

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import polars as pl

from c4.gates.cvee import CVEE
from c4.gates.gate import ask, exit_step
from c4.gates.registry import make_gate
from c4.gates.run_signals import load_signals, stack_signals
from c4.models import EMBEDDED, LoadedModel
from c4.record.plan import Plan, RunConfig, load_planned, plan_methods, plan_recording
from c4.record.recorder import start_recording
from c4.record.settings import MethodChoice
from c4.replay.calibration import TOLERANCE
from c4.replay.decisions import replay
from c4.replay.grader import ReplayGrader
from c4.store.runs import Run, open_run
from c4.tasks import TASKS, AnswerReading, Ending

PATIENCES = range(3, 25)
"""Values of p_min that are tried for equal steps; 3 is the deployed one."""


@dataclass(frozen=True)
class Measured:
    """One method on one task under one ending."""

    task: str
    method: str
    ending: Ending
    n: int
    accuracy: float
    full_accuracy: float
    """Accuracy of the full decode on the same examples, read the same way."""
    identical: float
    """Share of answers that are the full decode's."""
    steps: float

    @property
    def difference(self) -> float:
        """Points of accuracy over the full decode."""
        return 100 * (self.accuracy - self.full_accuracy)


def main() -> None:
    arguments = parse()
    model: LoadedModel | None = None
    measured: list[Measured] = []
    equal: list[str] = []
    for task in arguments.task or list(TASKS):
        config = RunConfig(
            task=task, n=arguments.n, out=arguments.out, unsafe_code=arguments.unsafe_code
        )
        plan = plan_recording(config)
        model = model or load_planned(plan)
        decode_missing(plan, model)
        for ending in Ending:
            measured += measure(config, plan, model, AnswerReading(ending=ending))
        equal.append(equal_steps(plan))
    print(f"\n{render(measured)}\n\n{render_totals(measured)}\n\n{EQUAL}\n" + "\n".join(equal))


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--n", type=int, default=100, help="evaluation problems of each task")
    parser.add_argument("--out", type=Path, default=Path("bench-out/ending"))
    parser.add_argument("--task", action="append", choices=list(TASKS), help="only these")
    parser.add_argument("--unsafe-code", action="store_true", help="run programs unisolated")
    return parser.parse_args()


def measure(
    config: RunConfig, plan: Plan, model: LoadedModel, reading: AnswerReading
) -> Iterator[Measured]:
    """CVEE and C4 under one reading."""
    wanted = {sample.index for sample in plan.sample_set.samples}
    run = open_run(plan.folder, reading)
    yield replayed(run, wanted, config.unsafe_code)
    (live,) = plan_methods(replace(config, reading=reading), MethodChoice(["c4"]))
    decode_missing(live, model)
    yield ran(run, live, wanted, config.unsafe_code)


def decode_missing(plan: Plan, model: LoadedModel) -> None:
    with start_recording(plan, model) as recording:
        decoded = sum(1 for _ in recording)
    print(f"{plan.folder}: {decoded} decoded", flush=True)


def replayed(run: Run, wanted: set[int], unsafe_code: bool) -> Measured:
    """CVEE over the recording."""
    gates = {"cvee": make_gate("cvee", run.task.family)}
    frame = pl.concat(replay(run, gates, unsafe_code=unsafe_code))
    frame = frame.filter(pl.col("trajectory").is_in(sorted(wanted)))
    means = frame.select(pl.col("correct", "full_correct", "identical", "steps").mean())
    return Measured(run.task_name, "cvee", run.reading.ending, len(frame), *means.row(0))


def ran(run: Run, plan: Plan, wanted: set[int], unsafe_code: bool) -> Measured:
    """C4 live, beside the recorded full decode."""
    live = open_run(plan.folder, run.reading)
    full = {row.trajectory: ReplayGrader(run, unsafe_code).own(row) for row in run.rows()}
    rows = [row for row in live.rows() if row.trajectory in wanted]
    grades = [ReplayGrader(live, unsafe_code).own(row) for row in rows]
    both = ((own, full[row.trajectory]) for own, row in zip(grades, rows, strict=True))
    pairs = [
        (own, base)
        for own, base in both
        if own and base and None not in (own.correct, base.correct)
    ]
    return Measured(
        task=run.task_name,
        method="c4",
        ending=run.reading.ending,
        n=len(pairs),
        accuracy=mean([bool(own.correct) for own, _ in pairs]),
        full_accuracy=mean([bool(base.correct) for _, base in pairs]),
        identical=mean([own.answer == base.answer for own, base in pairs]),
        steps=mean([row.steps for row in rows]),
    )


EQUAL = (
    "| task | cut: p_min | steps | identical % | skip: p_min | steps | identical % |\n"
    "|---|---:|---:|---:|---:|---:|---:|"
)


def equal_steps(plan: Plan) -> str:
    """A line of the table at equal steps: each ending's patience, steps and identical answers."""
    curves = {ending: patience_curve(plan, ending) for ending in Ending}
    target = max(curve[0][1] for curve in curves.values())
    cells = [plan.task.name]
    for curve in curves.values():
        patience, steps, identical = next((c for c in curve if c[1] >= target), curve[-1])
        cells += [str(patience), f"{steps:.1f}", f"{100 * identical:.1f}"]
    return f"| {' | '.join(cells)} |"


def patience_curve(plan: Plan, ending: Ending) -> list[tuple[int, float, float]]:
    """p_min, mean steps and the share of identical answers of CVEE, from impatient to patient."""
    run = open_run(plan.folder, AnswerReading(ending=ending))
    signals = stack_signals(list(load_signals(run))).signals
    curve = []
    for patience in PATIENCES:
        exits = exit_step(ask(CVEE(p_min=patience), signals))
        steps = np.where(exits > 0, exits, signals.steps)
        answers = np.take_along_axis(signals.answer, steps[:, None] - 1, axis=1)
        identical = float((answers == signals.last("answer")).mean())
        curve.append((patience, float(steps.mean()), identical))
    return curve


def mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def render(measured: Sequence[Measured]) -> str:
    """One line for each task, method and ending; a loss past the tolerance stands out."""
    lines = [
        f"Model: {EMBEDDED}. CVEE is replayed, C4 live; Δ is against the full decode, read alike.",
        "",
        "| task | method | ending | n | accuracy % | Δ | identical % | steps |",
        "|---|---|---|---:|---:|---:|---:|---:|",
    ]
    for m in measured:
        past = m.difference < -TOLERANCE - 1e-9
        difference = f"**{m.difference:+.1f}**" if past else f"{m.difference:+.1f}"
        lines.append(
            f"| {m.task} | {m.method} | {m.ending} | {m.n} | {100 * m.accuracy:.1f} | "
            f"{difference} | {100 * m.identical:.1f} | {m.steps:.1f} |"
        )
    return "\n".join(lines)


def render_totals(measured: Sequence[Measured]) -> str:
    """Each method and ending over all tasks, every task counting alike."""
    lines = [
        "| method | ending | tasks | mean Δ | worst Δ | identical % | steps |",
        "|---|---|---:|---:|---:|---:|---:|",
    ]
    for method in ("cvee", "c4"):
        for ending in Ending:
            some = [m for m in measured if (m.method, m.ending) == (method, ending)]
            differences = [m.difference for m in some]
            lines.append(
                f"| {method} | {ending} | {len(some)} | {mean(differences):+.2f} | "
                f"{min(differences):+.1f} | {100 * mean([m.identical for m in some]):.1f} | "
                f"{mean([m.steps for m in some]):.1f} |"
            )
    return "\n".join(lines)


if __name__ == "__main__":
    main()
