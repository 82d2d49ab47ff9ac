"""Gates by name, with the paper's settings for each family, and gates that users define."""

import logging
import sys
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any

from c4.errors import C4Error, ConfigError, failure, shortened, unknown_name
from c4.gates.kinds import GATES, OwnGate
from c4.store.parameters import typed_parameters
from c4.tasks import Family

log = logging.getLogger(__name__)

ENTRY_POINTS = "c4.gates"
"""Entry-point group under which installed packages offer gates."""

PAPER_SETTINGS: dict[str, dict[Family, dict[str, Any]]] = {
    "prophet": {
        Family.LETTERS: {"high": 7.5, "mid": 5.0, "low": 2.5},
        Family.LONG_REASONING: {"high": 8.0, "mid": 5.0, "low": 3.5},
        Family.CODE: {"high": 7.5, "mid": 5.0, "low": 4.5},
    },
    "sched": {
        Family.LETTERS: {"high": 7.5, "low": 2.5, "curve": "cosine", "patience": 0},
        Family.LONG_REASONING: {"high": 8.0, "low": 3.5, "curve": "linear", "patience": 4},
        Family.CODE: {"high": 7.5, "low": 4.5, "curve": "cosine", "patience": 4},
    },
}
"""Table 3 of the paper. CVEE's settings are its defaults, one for all tasks."""


@cache
def offered_gates() -> Mapping[str, EntryPoint]:
    """What installed packages offer, not loaded yet. A name of c4's own stays c4's, and is said."""
    offered = {point.name: point for point in entry_points(group=ENTRY_POINTS)}
    for name in sorted(offered.keys() & GATES.keys()):
        point = offered.pop(name)
        log.warning(
            "%s offers a gate named %s, which is c4's own; ask for its gate as --gate %s",
            package_of(point),
            name,
            point.value,
        )
    return offered


def package_of(point: EntryPoint) -> str:
    """The name of the package that offers a gate."""
    return "a package" if point.dist is None else f"the package {point.dist.name}"


def make_gate(name: str, family: Family | None = None, /, **params: Any) -> OwnGate:
    """A gate by name or `module:object`, with the paper's settings where none are given.

    Args:
        family: whose settings to start from; the gate's own defaults if None.
    """
    kind = _find(name)
    if not isinstance(kind, type):
        if params:
            raise ConfigError(f"{name} is a ready-made gate and takes no parameters")
        return _checked(name, kind)
    settings = PAPER_SETTINGS.get(name, {}).get(family, {}) if family else {}
    return _checked(name, _build(name, kind, {**settings, **params}))


def gate_parameters(name: str) -> list[str]:
    """What can be set in a gate."""
    kind = _find(name)
    return [spec.name for spec in fields(kind)] if is_dataclass(kind) else []


def _find(name: str) -> Any:
    offered = offered_gates()
    if name in GATES:
        return GATES[name]
    if name in offered:
        return _load(offered[name])
    if ":" not in name:
        known = sorted({*GATES, *offered})
        raise unknown_name("gate", name, known, also="one of your own: module:object")
    return _import(name)


def _import(name: str) -> Any:
    """The object that `module:object` names. The module is somebody's own code, and is run."""
    module, _, attribute = name.partition(":")
    if not all(part.isidentifier() for part in [*module.split("."), attribute]):
        raise ConfigError(
            f"cannot load the gate {shortened(name)!r}: write module:object, as in my_gates:Calm"
        )
    if str(Path.cwd()) not in sys.path:  # a console script does not look where it is called
        sys.path.append(str(Path.cwd()))
    try:
        return getattr(import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        raise ConfigError(
            f"cannot load the gate {shortened(name)!r}: {shortened(str(error))}; the module must "
            "stand in this folder or be installed"
        ) from error
    except (Exception, SystemExit) as error:
        raise ConfigError(
            f"cannot load the gate {shortened(name)!r}: {failure(error)}; repair its module"
        ) from error


def _load(point: EntryPoint) -> Any:
    try:
        return point.load()
    except (Exception, SystemExit) as error:  # a package's own code runs here
        raise ConfigError(
            f"cannot load the gate {point.name!r} that {package_of(point)} offers as "
            f"{point.value}: {failure(error)}; repair or uninstall it"
        ) from error


def _build(name: str, kind: type[Any], params: Mapping[str, Any]) -> Any:
    """A gate of a kind; what its own code makes of the parameters is said in words."""
    typed = typed_parameters(name, kind, params)
    try:
        return kind(**typed)
    except C4Error:
        raise
    except (Exception, SystemExit) as error:
        raise ConfigError(f"cannot make the gate {shortened(name)!r}: {failure(error)}") from error


def _checked(name: str, gate: Any) -> OwnGate:
    if not callable(getattr(gate, "fires", None)):
        raise ConfigError(f"{name} is no gate: it has no function fires(signals)")
    found: OwnGate = gate
    return found
