"""`c4 models`."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from c4.cli.complete import complete_model, complete_source, complete_task
from c4.cli.engines import decode_plans, require_none_aside
from c4.cli.options import EngineOptions, JsonOption, OutRunsOption, takes_options
from c4.cli.output import say, say_json, show
from c4.cli.tables import new_table, not_gradable_note

if TYPE_CHECKING:
    from c4.analysis.evaluation import TaskEvaluation

app = typer.Typer(no_args_is_help=True, help="List models, or evaluate one on every task.")


@app.command("list")
def list_command(
    as_json: JsonOption = False,
) -> None:
    """List the model names that --model accepts, besides hub ids and folders."""
    from c4.models import ALIASES, EMBEDDED

    models = {EMBEDDED: None, **ALIASES}
    if as_json:
        say_json([{"model": name, "hub": hub} for name, hub in models.items()])
        return
    table = new_table("--model", "what it is")
    for name, hub in models.items():
        table.add_row(name, f"hub: {hub}" if hub else "ships with c4")
    show(table)


@app.command("eval")
@takes_options()
def eval_command(
    *,
    ctx: typer.Context,
    model: Annotated[
        str, typer.Argument(help="A name, a hub id or a folder.", autocompletion=complete_model)
    ] = "tiny",
    n: Annotated[int, typer.Option(min=1, help="Number of evaluation problems per task.")] = 100,
    task: Annotated[
        list[str] | None,
        typer.Option(
            help="Use only this task; may be given several times.", autocompletion=complete_task
        ),
    ] = None,
    source: Annotated[
        str,
        typer.Option(
            help="Where problems come from: embedded or hub.", autocompletion=complete_source
        ),
    ] = "embedded",
    out: OutRunsOption = Path("runs"),
    engines: EngineOptions,
    as_json: JsonOption = False,
) -> None:
    """Decode evaluation problems of every task at full budget; report accuracy and stabilization.

    Recordings are kept, so a second call decodes only what is missing. Example: c4 models eval tiny
    """
    from c4.analysis import evaluate_run
    from c4.record.plan import RunConfig, plan_recording
    from c4.store.runs import open_run
    from c4.tasks import TASKS

    choice = engines.choose()
    plans = [
        plan_recording(
            choice.config(RunConfig(task=name, model=model, source=source, n=n, out=out))
        )
        for name in dict.fromkeys(task or TASKS)
    ]
    if not decode_plans(ctx, choice, plans, as_json=as_json):
        return
    require_none_aside(plans)
    evaluations = [evaluate_run(open_run(plan.folder), plan.wanted) for plan in plans]
    if as_json:
        pairs = zip(plans, evaluations, strict=True)
        say_json([{"model": p.checkpoint.name, **asdict(e), "folder": p.folder} for p, e in pairs])
    else:
        say(render(evaluations))


def render(evaluations: "list[TaskEvaluation]") -> str:
    """Return a Markdown table of the evaluations, with notes on ungraded answers."""
    lines = [
        "| task | n | accuracy | 95% interval | s_0.5 | s_0.9 | located | s per decode |",
        "|---|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for e in evaluations:
        settled = ["–" if s is None else f"{s:.2f}" for s in (e.s_50, e.s_90)]
        accuracy = "–" if e.accuracy is None else f"{e.accuracy:.0%}"
        interval = "–" if e.interval is None else f"{e.interval[0]:.0%}–{e.interval[1]:.0%}"
        cells = [e.task, str(e.n), accuracy, interval, *settled]
        lines.append(f"| {' | '.join([*cells, f'{e.located:.0%}', f'{e.mean_seconds:.2f}'])} |")
    counts = {e.task: e.n - e.graded - e.not_gradable for e in evaluations}
    if ungraded := [f"{count} of {task}" for task, count in counts.items() if count]:
        lines += [
            "",
            f"Not graded, so not counted: {', '.join(ungraded)}. To grade them: c4 grade FOLDER.",
        ]
    if note := not_gradable_note({e.task: e.not_gradable for e in evaluations}):
        lines += ["", f"{note} (c4 grade FOLDER tries them again)"]
    return "\n".join(lines)
