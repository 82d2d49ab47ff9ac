"""`c4 plugins`."""

from importlib import import_module
from typing import Annotated

import typer

from c4.cli.options import JsonOption
from c4.cli.output import say, say_json, show
from c4.cli.tables import new_table

REGISTRIES = (
    *("c4.tasks.registry", "c4.gates.registry", "c4.gates.own_signals"),
    *("c4.decode.rules", "c4.tasks.reading.extractors", "c4.tasks.graders"),
)
"""Modules that each hold a registry named `REGISTRY`."""
OWN = "c4"
"""The package that is shown for c4's own names."""


app = typer.Typer(invoke_without_command=True)


@app.callback()
def plugins_command(
    context: typer.Context,
    as_json: JsonOption = False,
) -> None:
    """List all plug-ins that have a name: c4's own and those of installed packages.

    Nothing is loaded. Refer to a plug-in without a name as module:object or path/to/file.py:object.
    A method is a rule, a gate, or a pair rule+gate.
    """
    if context.invoked_subcommand is not None:
        return
    found = []
    for module in REGISTRIES:
        registry = import_module(module).REGISTRY
        kind = {"kind": registry.noun, "option": registry.option}
        found += [kind | {"name": own, "package": OWN, "object": None} for own in registry.own]
        for own, point in sorted(registry.offered().items()):
            package = point.dist.name if point.dist else "–"
            found.append(kind | {"name": own, "package": package, "object": point.value})
    if as_json:
        say_json(found)
        return
    columns = ("kind", "name", "option", "package", "object")
    table = new_table(*columns)
    for one in found:
        table.add_row(*(one[column] or "–" for column in columns))
    show(table)
    others = sorted({one["package"] for one in found} - {OWN})
    say(f"from installed packages: {', '.join(others) or 'none'}")


@app.command("check")
def check_command(
    names: Annotated[
        list[str],
        typer.Argument(help="As in --gate, --method, --task, --reading, --grader or --signal."),
    ],
    kind: Annotated[
        str | None,
        typer.Option(help="gate, rule, task, extractor, grader or signal, if it cannot be told."),
    ] = None,
    written: Annotated[
        str | None,
        typer.Option(help="How a model writes the answers of this task: '<answer>{}</answer>'."),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Try your own gate, rule, task, extractor, grader or signal on a made-up decode.

    Its code is run under the same guards as in a recording or a replay.
    """
    from c4 import check

    passed = []
    for name in names:
        passed.append({"name": name, "kind": check(name, kind, written=written)})
        if not as_json:
            say(f"{name} passes the check: {passed[-1]['kind']}")
    if as_json:
        say_json(passed)
