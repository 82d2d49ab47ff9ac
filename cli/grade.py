"""`c4 grade`."""

from dataclasses import asdict
from typing import Annotated

import typer

from c4.cli.complete import complete_task
from c4.cli.engines import grade_run
from c4.cli.options import (
    EngineOptions,
    JsonOption,
    ReadingOptions,
    RunArgument,
    UnsafeOption,
    takes_options,
)
from c4.cli.output import say, say_json
from c4.cli.record import render

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


@takes_options()
def grade_command(
    *,
    ctx: typer.Context,
    run: RunArgument,
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
    answers: ReadingOptions,
    unsafe_code: UnsafeOption = False,
    engines: EngineOptions,
    as_json: JsonOption = False,
) -> None:
    from c4.store.runs import find_recorded_task, find_run, open_run
    from c4.store.summary import summarise
    from c4.tasks.grading import check_can_grade

    run = find_run(run)
    tasks = [] if task is None else [find_recorded_task(task, run)]
    read_as = answers.choose()
    choice = engines.choose()
    recorded = open_run(run, read_as, tasks)
    check_can_grade(recorded.task, read_as, unsafe_code=unsafe_code)
    options = {"everything": everything, "unsafe_code": unsafe_code, "as_json": as_json}
    if not grade_run(ctx, choice, recorded, **options):
        return
    summary = summarise(run, reading=read_as)
    if as_json:
        say_json(asdict(summary))
    else:
        say(render(summary))
