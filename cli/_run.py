"""`c4 run`."""

import json
import logging
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from c4.cli._decode import (
    BlockOption,
    CalibrationOption,
    DecodedModelOption,
    DeviceOption,
    DtypeOption,
    GradedOption,
    JsonOption,
    LabelOption,
    LengthOption,
    MethodOption,
    ResumeOption,
    RevisionOption,
    SeedOption,
    SettingsOption,
    SkipOption,
    SourceOption,
    StepsOption,
    TasksOption,
    UnsafeOption,
    choose_methods,
)
from c4.cli._progress import progress, status
from c4.cli._reading import EndingOption, ReadingOption, choose_reading
from c4.cli._tables import new_table, show

if TYPE_CHECKING:
    from c4.record import LiveSummary, Plan

log = logging.getLogger(__name__)

HELP = """Decode live under any method, grade, and keep one row per example.

All methods of a call share the model and the examples, so they can be compared pair by pair. The
results go to OUT/live/model=MODEL/task=TASK/method=LABEL; what is there already is not decoded
again. Parameters are the paper's for each task unless you set them. How a gate reads answers is
one of its settings; a method without a gate is decoded once, and graded under any reading.

Examples:

    c4 run --method c4 --method baseline --task gsm8k --task mmlu --n 40

    c4 run --method c4 --task math --set H=2 --set cvee.tau=0.8

    c4 run --method wino --task gsm8k --record
"""


def run_command(
    method: MethodOption,
    task: TasksOption,
    model: DecodedModelOption = "tiny",
    n: Annotated[int | None, typer.Option(min=1, help="Examples of each task.")] = None,
    skip: SkipOption = None,
    seed: SeedOption = 0,
    source: SourceOption = None,
    gen_length: LengthOption = None,
    steps: StepsOption = None,
    block_length: BlockOption = None,
    settings: SettingsOption = None,
    config: CalibrationOption = None,
    label: LabelOption = None,
    device: DeviceOption = "auto",
    dtype: DtypeOption = "auto",
    revision: RevisionOption = None,
    out: Annotated[Path, typer.Option(help="Folder of all results.")] = Path("runs"),
    record: Annotated[
        bool, typer.Option("--record", help="Keep every step of the live decodes too.")
    ] = False,
    resume: ResumeOption = True,
    graded: GradedOption = True,
    reading: ReadingOption = None,
    ending: EndingOption = None,
    unsafe_code: UnsafeOption = False,
    as_json: JsonOption = False,
) -> None:
    from c4.record import RecordConfig
    from c4.replay import plan_methods

    choice = choose_methods(method, settings, config, label)
    plans = [
        plan
        for name in dict.fromkeys(task)
        for plan in plan_methods(
            RecordConfig(
                task=name,
                model=model,
                revision=revision,
                source=source,
                n=n,
                skip=skip,
                seed=seed,
                length=gen_length,
                steps=steps,
                block=block_length,
                device=device,
                dtype=dtype,
                out=out,
                fresh=not resume,
                graded=graded,
                unsafe_code=unsafe_code,
                reading=choose_reading(reading, ending, config),
            ),
            choice,
            recorded=record,
        )
    ]
    decode_plans(plans)
    print_summaries(plans, as_json=as_json)


def decode_plans(plans: "Sequence[Plan]") -> None:
    """Decode what every plan lacks, with one loaded model."""
    from c4.record import load_planned, start_recording

    with status(f"loading {plans[0].checkpoint.name}"):
        loaded = load_planned(plans[0])
    for plan in plans:
        with ExitStack() as stack:
            recording = stack.enter_context(start_recording(plan, loaded))
            log.info("%s: %d examples to decode", plan.folder, len(recording))
            title = f"{plan.task.name} {plan.folder.name}"
            advance = stack.enter_context(progress(title, len(recording)))
            for row in recording:
                advance(f"{row.forward_passes} steps")


def print_summaries(plans: "Sequence[Plan]", *, as_json: bool) -> None:
    """How the methods did on the examples that were asked for, and no others on disk."""
    from c4.record import summarise_live

    summaries = [
        summarise_live(
            plan.folder,
            {sample.index for sample in plan.sample_set.samples},
            plan.config.reading,
        )
        for plan in plans
    ]
    if as_json:
        typer.echo(json.dumps([asdict(summary) for summary in summaries]))
    else:
        show(render(summaries))


def render(summaries: "list[LiveSummary]") -> Table:
    """One line a method, beside the baseline where there is one."""
    columns = ("task", "method", "n", "accuracy", "Δ", "steps", "saving", "exits")
    table = new_table(*columns, "identical", "tokens/forward")
    for s in summaries:
        table.add_row(
            s.task,
            s.method,
            str(s.n),
            "–" if s.accuracy is None else f"{s.accuracy:.1%}",
            "–" if s.drop is None else f"{0 - s.drop:+.1f}",
            f"{s.steps:.1f} of {s.budget}",
            f"{s.saving:.1%}",
            f"{s.exits:.1%}",
            "–" if s.identical is None else f"{s.identical:.1%}",
            f"{s.tokens_per_forward:.2f}",
        )
    return table
