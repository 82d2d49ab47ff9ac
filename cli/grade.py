"""`c4 grade`."""

from dataclasses import asdict
from typing import Annotated

import typer

from c4.cli.complete import complete_task, run_folders
from c4.cli.engines import (
    EngineOption,
    RayAddressOption,
    SlurmOption,
    WorkersOption,
    choose_engine,
    grade_here,
    grade_with_workers,
)
from c4.cli.options import UnsafeOption
from c4.cli.output import say, say_json
from c4.cli.places import ANY_PLACE
from c4.cli.reading import EndingOption, GraderOption, ReadingOption, choose_reading
from c4.cli.record import render
from c4.record.engines.worker import this_worker
from c4.store.locations import Location

HELP = """Grade a run that was made with --no-grade, or grade one again.

The run is a recording or the results of `c4 run`. Grades are stored beside it, and nothing recorded
is changed. For each reading, the newest grade counts. Answers that are not gradable, because the
machine failed, are tried again.

Examples:

    c4 grade runs/model=llada/task=humaneval/method=baseline

    c4 grade runs/model=llada/task=humaneval/method=c4

    c4 grade runs/model=tiny/task=math/method=baseline --reading plain --ending skip

    c4 grade runs/model=llada/task=math/method=baseline --all --grader math-verify

    c4 grade runs/model=llada/task=humaneval/method=baseline --engine local --workers 8
"""


def grade_command(
    ctx: typer.Context,
    run: Annotated[
        Location, typer.Argument(**ANY_PLACE, help="Folder of one run.", autocompletion=run_folders)
    ],
    everything: Annotated[
        bool, typer.Option("--all", help="Also grade trajectories that already have a grade.")
    ] = False,
    task: Annotated[
        str | None,
        typer.Option(
            autocompletion=complete_task,
            help="The run's task, if it is code of your own: my_task.py:TASK.",
        ),
    ] = None,
    reading: ReadingOption = None,
    ending: EndingOption = None,
    grader: GraderOption = None,
    unsafe_code: UnsafeOption = False,
    engine: EngineOption = None,
    workers: WorkersOption = None,
    ray_address: RayAddressOption = None,
    slurm: SlurmOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the summary as JSON.")] = False,
) -> None:
    from c4.store.runs import find_recorded_task, find_run, open_run
    from c4.store.summary import summarise
    from c4.tasks.grading import check_can_grade

    run = find_run(run)
    tasks = [] if task is None else [find_recorded_task(task, run)]
    read_as = choose_reading(reading, ending, grader)
    choice = choose_engine(engine, workers, ray_address, slurm)
    recorded = open_run(run, read_as, tasks)
    check_can_grade(recorded.task, read_as, unsafe_code=unsafe_code)
    if choice.name is not None:
        grade_with_workers(ctx, choice, recorded, everything=everything, as_json=as_json)
    else:
        grade_here(recorded, everything=everything, unsafe_code=unsafe_code)
    if not this_worker().reports:
        return
    summary = summarise(run, reading=read_as)
    if as_json:
        say_json(asdict(summary))
    else:
        say(render(summary))
