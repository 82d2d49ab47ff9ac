"""`c4 tasks`."""

from dataclasses import asdict
from typing import Annotated

import typer

from c4.cli.options import JsonOption
from c4.cli.output import say, say_json, show
from c4.cli.progress import status
from c4.cli.tables import new_table


def tasks_command(
    pattern: Annotated[
        str | None,
        typer.Argument(help="With --lm-eval: part of a name, or a pattern such as 'gsm8k*'."),
    ] = None,
    lm_eval: Annotated[
        bool,
        typer.Option("--lm-eval", help="List lm-eval's tasks that can be recorded instead."),
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """List the tasks with their family, their shape and the source of their examples.

    The shapes shown are the paper's. A model that defines its own shapes, such as the embedded one,
    uses those. To record a task of lm-evaluation-harness, give --task lm-eval:NAME.
    """
    from c4.tasks import TASKS
    from c4.tasks.registry import REGISTRY

    if lm_eval or pattern is not None:
        list_lm_eval(pattern or "*", as_json=as_json)
        return
    if as_json:
        rows = [
            {
                "task": task.name,
                "family": task.family,
                "shape": asdict(task.shape),
                "hub": asdict(task.hub) if task.hub else None,
                "n": task.n,
                "skip": task.skip,
            }
            for task in TASKS.values()
        ]
        say_json(rows)
        return
    table = new_table("task", "family", "L/T/B (paper)", "n", "skip", "hub data set")
    for task in TASKS.values():
        split = [task.hub.dataset, task.hub.config, task.hub.split] if task.hub else []
        hub = " ".join(filter(None, split))
        table.add_row(task.name, task.family, str(task.shape), str(task.n), str(task.skip), hub)
    show(table)
    if offered := sorted(REGISTRY.offered()):
        say(f"offered by installed packages (c4 plugins says which): {', '.join(offered)}")


def list_lm_eval(pattern: str, *, as_json: bool) -> None:
    """Print the harness's tasks that generate text and whose names match."""
    from c4.lm_eval import list_tasks

    with status("reading the harness's tasks"):
        found = list(list_tasks(pattern))
    if as_json:
        rows = [asdict(task) for task in found]
        say_json([{"task": f"lm-eval:{row.pop('name')}"} | row for row in rows])
        return
    table = new_table("--task", "data set", "few-shot", "filters")
    for task in found:
        filters = ", ".join(task.filters)
        table.add_row(f"lm-eval:{task.name}", task.dataset, str(task.num_fewshot), filters)
    show(table)
    say(
        f"{len(found)} tasks; those that score likelihoods, run programs or are Python classes are "
        "not listed"
    )
