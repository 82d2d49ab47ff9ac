"""`c4 tasks`."""

from dataclasses import asdict
from typing import Annotated

import typer

from c4.cli._output import say_json, show
from c4.cli._tables import new_table
from c4.tasks import TASKS


def tasks_command(
    as_json: Annotated[bool, typer.Option("--json", help="Print as JSON.")] = False,
) -> None:
    """List the tasks: family, shape and where their examples come from.

    The shapes shown are the paper's. A model that defines its own shapes uses those; the embedded
    model does.
    """
    if as_json:
        rows = [
            {
                "name": task.name,
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
