"""`c4 run`."""

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from c4.cli.engines import decode_plans, require_none_aside
from c4.cli.options import (
    DecodeOptions,
    EngineOptions,
    JsonOption,
    LabelOption,
    MethodConfigOption,
    MethodOption,
    MethodSettingsOption,
    TasksOption,
    several_tasks,
    takes_options,
)
from c4.cli.output import say, say_json, show
from c4.cli.tables import new_table, not_gradable_note, percent

if TYPE_CHECKING:
    from c4.store.summary import RunSummary

HELP = """Decode live under any method, grade, and keep one row per example.

All methods of a call share the model and the examples, so they can be compared pair by pair. The
results go to OUT/model=MODEL/task=TASK/method=LABEL; examples that are already there are not
decoded again. Parameters are the paper's for each task unless you set them. How a gate reads
answers is one of its settings; a method without a gate is decoded once and can be graded under any
reading.

Examples:

    c4 run --method c4 --method baseline --task gsm8k --task mmlu --n 40

    c4 run --method c4 --task math --set H=2 --set cvee.tau=0.8

    c4 run --method wino --task gsm8k --cells

    c4 run --method c4 --task gsm8k --engine local --workers 2
"""


@takes_options()
def run_command(
    *,
    method: MethodOption,
    task: TasksOption,
    ctx: typer.Context,
    settings: MethodSettingsOption = None,
    config: MethodConfigOption = None,
    label: LabelOption = None,
    cells: Annotated[bool, typer.Option("--cells", help="Keep every step as well.")] = False,
    decode: DecodeOptions,
    engines: EngineOptions,
    as_json: JsonOption = False,
) -> None:
    from c4.record.plan import plan_methods
    from c4.record.settings import MethodChoice
    from c4.store.summary import summarise

    methods = MethodChoice(method, settings or (), config, label)
    choice = engines.choose(decode.device)
    plans = [
        plan
        for name in several_tasks(task, decode.out)
        for plan in plan_methods(choice.config(decode.config(name, config)), methods, cells=cells)
    ]
    if not decode_plans(ctx, choice, plans, as_json=as_json):
        return
    # Leave out other examples that are on disk.
    summaries = [summarise(plan.folder, plan.wanted, plan.config.reading) for plan in plans]
    if as_json:
        say_json([asdict(summary) for summary in summaries])
    else:
        show(render(summaries))
        if note := not_gradable_note({str(s.folder): s.not_gradable for s in summaries}):
            say(f"{note} (c4 grade tries them again)")
    require_none_aside(plans)


def render(summaries: "list[RunSummary]") -> Table:
    """Return a table with one line per run, compared with the baseline if there is one."""
    columns = ("task", "method", "n", "accuracy", "Δ", "steps", "saving", "exits")
    table = new_table(*columns, "identical", "tokens/forward")
    for s in summaries:
        table.add_row(
            s.task,
            s.method,
            str(s.n),
            percent(s.accuracy),
            "–" if s.drop_points is None else f"{0 - s.drop_points:+.1f}",
            f"{s.steps:.1f} of {s.budget}",
            f"{s.saving:.1%}",
            f"{s.fired:.1%}",
            percent(s.identical),
            f"{s.tokens_per_forward:.2f}",
        )
    return table
