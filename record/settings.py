"""Methods with their settings: resolves `--method` and `--set` into methods that can decode.

A setting, parsed by `store/labels.py`, is `NAME=VALUE`, `PART.NAME=VALUE` or
`METHOD.PART.NAME=VALUE`. A part is a rule, a gate or `forward`, the forward pass of every method.
`METHOD.NAME=VALUE` suffices if only one part of the method has that parameter.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, is_dataclass, replace
from typing import Any

from c4.decode.forward import Forward
from c4.decode.rules import REGISTRY as RULE_NAMES
from c4.decode.rules import make_rule
from c4.errors import ConfigError, did_you_mean
from c4.gates.calibration_files import load_calibration
from c4.gates.gate import require_live
from c4.gates.registry import REGISTRY as GATE_NAMES
from c4.gates.registry import find_gate, make_gate, set_parameters
from c4.plugins import aliases, canonical_name
from c4.plugins.parameters import plain_settings, settable, typed_parameters
from c4.record.methods import (
    METHODS,
    Method,
    ResolvedMethod,
    find_methods,
    rule_settings,
    spell_method,
)
from c4.store.labels import Change, Label, parse_settings, reading_changes
from c4.store.locations import Location
from c4.tasks import AnswerReading, Task

FORWARD = "forward"
"""Name of the third part of every method, the forward pass."""
USERS_METHOD = re.compile(r"[\w.+ -]+:\w+(\+.*)?", re.DOTALL)
"""Pattern of the name of a user's own method, such as `my_rules.py:Greedy+cvee`."""

Settings = Mapping[str, Mapping[str, Any]]
"""Parameter values of one method, by part and name."""


@dataclass(frozen=True)
class MethodChoice:
    """The methods and settings that a user chose."""

    methods: Sequence[str]
    settings: Sequence[str] = ()
    calibration: Location | None = None
    """A file written by `c4 calibrate`; its settings are used for its gate."""
    label: str | None = None
    """Label of the results; only for a single method."""


def resolve_methods(
    choice: MethodChoice, task: Task, reading: AnswerReading | None = None, *, shift: bool = False
) -> list[ResolvedMethod]:
    """Resolve all parameters of the methods: the user's, else calibrated, else the paper's."""
    reading = reading or AnswerReading()
    methods = find_methods(choice.methods)
    if choice.label is not None and len(methods) != 1:
        raise ConfigError(f"--label {choice.label} names one method; {len(methods)} chosen")
    settings = _settings_by_method(parse_settings(choice.settings), methods)
    frozen = _frozen_settings(choice, methods, reading)
    resolved = []
    for name, method in methods.items():
        changes = settings[name]
        for gate in frozen.keys() & {method.gate}:
            changes[gate] = frozen[gate] | changes.get(gate, {})
        made = _resolve(name, method, changes, task, shift, reading)
        resolved.append(replace(made, label=_checked_label(choice.label, made.label)))
    return resolved


def _settings_by_method(
    settings: Sequence[Change], methods: Mapping[str, Method]
) -> dict[str, dict[str, dict[str, Any]]]:
    """Group the settings by method and part; each must match a method, and only one part of it."""
    changes: dict[str, dict[str, dict[str, Any]]] = {name: {} for name in methods}
    for setting in settings:
        reached = False
        for name, method in methods.items():
            takers = _takers(setting, name, method)
            if len(takers) > 1:
                ways = " or ".join(str(replace(setting, part=part)) for part in takers)
                raise ConfigError(
                    f"--set {setting}: {name} has a {setting.name} in each of "
                    f"{' and '.join(takers)}; write {ways}"
                )
            for part in takers:
                reached = True
                changes[name].setdefault(part, {})[setting.name] = setting.value
        if not reached:
            raise _not_taken(setting, methods)
    return changes


def _takers(setting: Change, name: str, method: Method) -> list[str]:
    """Return the parts of a method that a setting may refer to and that have its parameter."""
    parts = parts_of(method)
    meant = [
        part
        for part in parts
        # A user may write the part `cvee` as `c4.cvee`, with the method.
        for names in [{own for short in aliases(part) for own in (short, f"{name}.{short}")}]
        if setting.part is None or setting.part in names
    ]
    if setting.part == name and name not in parts:
        meant = parts
    return [part for part in meant if setting.name in parameters_of(part)]


def parts_of(method: Method) -> list[str]:
    """Names of the parts of a method that can have parameters."""
    gate = [] if method.gate is None else [method.gate]
    return [method.rule, *gate, FORWARD]


def parameters_of(part: str) -> list[str]:
    """Names of the parameters of a part."""
    if part == FORWARD:
        return [spec.name for spec in settable(Forward)]
    registry = RULE_NAMES if part in RULE_NAMES.names else GATE_NAMES
    kind: Any = registry.find(part).found
    made_here = isinstance(kind, type) and is_dataclass(kind)  # not a ready-made object
    return [spec.name for spec in settable(kind)] if made_here else []


def _not_taken(setting: Change, methods: Mapping[str, Method]) -> ConfigError:
    parts = {part for method in methods.values() for part in parts_of(method)}
    known = {part: parameters_of(part) for part in sorted(parts)}
    near = did_you_mean(setting.name, [name for names in known.values() for name in names])
    have = ", ".join(f"{canonical_name(part)}.{name}" for part in known for name in known[part])
    return ConfigError(
        f"--set {setting}: no chosen method takes that; {near and f'{near} '}there is {have}"
    )


def _frozen_settings(
    choice: MethodChoice, methods: Mapping[str, Method], reading: AnswerReading
) -> dict[str, dict[str, Any]]:
    """Return the calibrated parameters, by gate."""
    if choice.calibration is None:
        return {}
    frozen = load_calibration(choice.calibration)
    frozen.check_reading(reading)
    typed = dict.fromkeys(method.gate for method in methods.values() if method.gate is not None)
    mine = [gate for gate in typed if GATE_NAMES.canonical(gate) == frozen.gate]
    if not mine:
        raise ConfigError(
            f"{choice.calibration} is about {frozen.gate}, and no chosen method has it"
        )
    for gate in mine:
        frozen.check_source(gate)
    return {gate: dict(frozen.chosen) for gate in mine}


def _resolve(
    name: str,
    method: Method,
    changes: Settings,
    task: Task,
    shift: bool,
    reading: AnswerReading,
) -> ResolvedMethod:
    paper = rule_settings(method, task, shift=shift)
    rule = make_rule(method.rule, paper | dict(changes.get(method.rule, {})))
    forward = Forward(**typed_parameters(FORWARD, Forward, changes.get(FORWARD, {})))
    changed = _changed(method.rule, asdict(rule), asdict(make_rule(method.rule, paper)))
    changed |= _changed(FORWARD, asdict(forward), asdict(Forward()))
    in_folders = any(canonical_name(part) != part for part in parts_of(method))
    resolved = ResolvedMethod(
        name=name,
        typed=spell_method(method, as_typed=True) if in_folders else None,
        label=_label(name, method, changed),
        rule_name=RULE_NAMES.canonical(method.rule),
        rule=rule,
        rule_source=RULE_NAMES.find(method.rule).identity,
        forward=forward,
    )
    if method.gate is None:
        return resolved
    gate = make_gate(method.gate, task.family, **changes.get(method.gate, {}))
    require_live(gate)
    usual = set_parameters(make_gate(method.gate, task.family))
    changed |= _changed(method.gate, set_parameters(gate), usual)
    return replace(
        resolved,
        label=_label(name, method, changed, reading_changes(reading, AnswerReading())),
        gate_name=GATE_NAMES.canonical(method.gate),
        gate=gate,
        gate_source=find_gate(method.gate).identity,
        gate_settings=set_parameters(gate),
        reading=reading,
    )


def _changed(
    part: str, now: Mapping[str, Any], paper: Mapping[str, Any]
) -> dict[tuple[str, str], Any]:
    """Return the parameters that differ from the paper's."""
    now, paper = (plain_settings(canonical_name(part), values) for values in (now, paper))
    return {(part, name): value for name, value in now.items() if value != paper[name]}


def _label(
    name: str,
    method: Method,
    changed: Mapping[tuple[str, str], Any],
    of_reading: tuple[Change, ...] = (),
) -> str:
    """Return the method's name with the changed parameters, such as `c4,H=2`."""
    parts = parts_of(method)
    changes = []
    for (part, parameter), value in changed.items():
        alone = sum(parameter in parameters_of(p) for p in parts) == 1
        shown = f"{value:g}" if isinstance(value, float) else str(value).lower()
        changes.append(Change(None if alone else canonical_name(part), parameter, shown))
    return str(Label(name, (*changes, *of_reading)))


def _checked_label(wanted: str | None, derived: str) -> str:
    """Return the user's label, which must not look like a method's name with settings."""
    if wanted is None or wanted == derived:
        return derived
    if not wanted.strip(" ."):
        raise ConfigError(f"--label {wanted!r} is no name; results could not be told apart by it")
    name = Label.parse(wanted).method
    if name in METHODS or USERS_METHOD.fullmatch(name):
        raise ConfigError(
            f"--label {wanted} would pass for the method {name}, and this is {derived}; choose a "
            "label that does not begin with a method's name"
        )
    return wanted
