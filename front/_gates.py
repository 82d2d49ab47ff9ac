"""Gates passed as arguments in notebooks: objects, classes or names."""

from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from itertools import chain
from typing import Any

from c4.errors import ConfigError
from c4.gates import GATES, Gate, make_gate
from c4.gates.registry import checked_gate
from c4.store.labels import Change, Label
from c4.tasks import Task

NAMES = {kind: name for name, kind in GATES.items()}


def name_gates(task: Task, gates: Sequence[Any], named: Mapping[str, Any]) -> dict[str, Gate]:
    """Make gates by label; CVEE, Prophet and SchED if none are given."""
    if not gates and not named:
        gates = ("cvee", "prophet", "sched")
    found: dict[str, Gate] = {}
    lists = [gate if isinstance(gate, list | tuple) else [gate] for gate in gates]
    for gate in chain.from_iterable(lists):
        name = gate_label(gate)
        if name in found or name in named:
            raise ConfigError(
                f"two gates go by {name}; give one of them a name of its own, as in "
                "run.replay(mine=CVEE(tau=0.8))"
            )
        found[name] = _made(gate, task)
    return found | {name: _made(gate, task) for name, gate in named.items()}


def gate_label(gate: Any) -> str:
    """Label of a gate: its name, followed by the parameters that differ from the defaults."""
    if isinstance(gate, str):
        return gate
    if isinstance(gate, type):
        return NAMES.get(gate, gate.__name__)
    name = NAMES.get(type(gate), type(gate).__name__)
    changes = []
    for spec in fields(gate) if is_dataclass(gate) else ():
        value = getattr(gate, spec.name)
        if value != spec.default:
            spelled = f"{value:g}" if isinstance(value, float) else str(value)
            changes.append(Change(None, spec.name, spelled))
    return str(Label(name, tuple(changes)))


def _made(gate: Any, task: Task) -> Gate:
    if isinstance(gate, str):
        return make_gate(gate, task.family)
    return checked_gate(repr(gate), gate() if isinstance(gate, type) else gate)
