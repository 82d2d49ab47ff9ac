"""`c4 plugins`."""

from dataclasses import asdict, dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Annotated

import typer

from c4.cli.options import JsonOption
from c4.cli.output import say, say_json, show
from c4.cli.tables import new_table

if TYPE_CHECKING:
    from c4.plugins import Registry

REGISTRIES = {
    "c4.tasks.registry": "REGISTRY",
    "c4.gates.registry": "REGISTRY",
    "c4.gates.own_signals": "REGISTRY",
    "c4.record.methods": "RULE_NAMES",
    "c4.tasks.reading.extractors": "REGISTRY",
    "c4.tasks.graders": "REGISTRY",
}
"""The registries, by the modules that hold them."""
OWN = "c4"
"""The package that is shown for c4's own names."""


@dataclass(frozen=True)
class Listed:
    """A name that an option takes."""

    kind: str
    name: str
    option: str
    package: str
    """The installed package that offers it, or `c4`."""
    object: str | None
    """What the package offers under the name; None for c4's own."""


app = typer.Typer(invoke_without_command=True)


@app.callback()
def plugins_command(
    context: typer.Context,
    as_json: JsonOption = False,
) -> None:
    """List everything that can be plugged in and has a name: c4's own, and installed packages'.

    Nothing is loaded. Others are named as module:object or path/to/file.py:object. A method is a
    rule, a gate, or a pair rule+gate.
    """
    if context.invoked_subcommand is not None:
        return
    registries = [getattr(import_module(module), name) for module, name in REGISTRIES.items()]
    found = [listed for registry in registries for listed in list_names(registry)]
    if as_json:
        say_json([asdict(one) for one in found])
        return
    table = new_table("kind", "name", "option", "package", "object")
    for one in found:
        table.add_row(one.kind, one.name, one.option, one.package, one.object or "–")
    show(table)
    others = sorted({one.package for one in found} - {OWN})
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
    """Try a gate, rule, task, extractor, grader or signal of your own on a made-up decode.

    Its code is run, under the same guards as in a recording or a replay.
    """
    from c4 import check

    passed = []
    for name in names:
        passed.append({"name": name, "kind": check(name, kind, written=written)})
        if not as_json:
            say(f"{name} passes the check of a {passed[-1]['kind']}")
    if as_json:
        say_json(passed)


def list_names(registry: "Registry") -> list[Listed]:
    """What a registry knows by name, without loading any of it."""
    kind, option = registry.noun, registry.option
    own = [Listed(kind, name, option, OWN, None) for name in registry.own]
    offered = [
        Listed(kind, name, option, point.dist.name if point.dist else "–", point.value)
        for name, point in sorted(registry.offered().items())
    ]
    return own + offered
