"""`c4 plugins`."""

from dataclasses import asdict, dataclass
from importlib import import_module
from typing import TYPE_CHECKING

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
    "c4.tasks.extractors": "REGISTRY",
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


def plugins_command(
    as_json: JsonOption = False,
) -> None:
    """List everything that can be plugged in and has a name: c4's own, and installed packages'.

    Nothing is loaded. Others are named as module:object or path/to/file.py:object. A method is a
    rule, a gate, or a pair rule+gate.
    """
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


def list_names(registry: "Registry") -> list[Listed]:
    """What a registry knows by name, without loading any of it."""
    kind, option = registry.noun, registry.option
    own = [Listed(kind, name, option, OWN, None) for name in registry.own]
    offered = [
        Listed(kind, name, option, point.dist.name if point.dist else "–", point.value)
        for name, point in sorted(registry.offered().items())
    ]
    return own + offered
