"""Methods with their gates: turns names and settings into something that can decode.

A setting, which `store/labels.py` reads, may name the part that has it, and the method before that:
`NAME=VALUE`, `PART.NAME=VALUE` or `METHOD.PART.NAME=VALUE`, where a part is a rule, a gate or
`forward`, the forward pass that every method has. `METHOD.NAME=VALUE` is enough where only one part
of the method has that name.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, is_dataclass, replace
from typing import Any

from c4.decode.forward import Forward
from c4.errors import ConfigError, did_you_mean
from c4.gates.calibrations import load_calibration
from c4.gates.candidates import CandidateReader
from c4.gates.gate import Gate, require_live
from c4.gates.live import LiveGate
from c4.gates.registry import REGISTRY as GATE_NAMES
from c4.gates.registry import find_gate, make_gate, set_parameters
from c4.gates.steps import ExitGate
from c4.models import find_checkpoint
from c4.plugins import aliases, canonical_name
from c4.plugins.parameters import plain_settings, settable, typed_parameters
from c4.record.methods import (
    METHODS,
    RULE_NAMES,
    Method,
    ResolvedMethod,
    find_methods,
    make_rule,
    rule_settings,
    spell_method,
)
from c4.record.plan import Plan, RunConfig, named_task, plan_decode, plan_run
from c4.store.labels import Change, Label, parse_settings, reading_changes
from c4.store.locations import Location
from c4.tasks import AnswerReading, Shape, Task
from c4.tasks.task import Choices
from c4.tasks.vocabulary import Vocabulary

FORWARD = "forward"
"""Name of the part of every method that is neither rule nor gate."""

OF_USERS = re.compile(r"[\w.+ -]+:\w+(\+.*)?", re.DOTALL)
"""What a user's own method goes by, as in `my_rules.py:Greedy+cvee`."""


@dataclass(frozen=True)
class MethodChoice:
    """The methods and settings that a user chose."""

    methods: Sequence[str]
    settings: Sequence[str] = ()
    calibration: Location | None = None
    """A file that `c4 calibrate` wrote; its setting is used for its gate."""
    label: str | None = None
    """Name of the results; only for a single method."""


def plan_methods(config: RunConfig, choice: MethodChoice, *, cells: bool = False) -> list[Plan]:
    """Plan a task under every chosen method: same examples, same model, a folder for each."""
    base, methods = choose_methods(config, choice)
    return [plan_run(base, method, cells=cells) for method in methods]


def choose_methods(config: RunConfig, choice: MethodChoice) -> tuple[Plan, list[ResolvedMethod]]:
    """The plan of a task, and the chosen methods with their settings for its task and model."""
    # Names and settings before anything that takes long.
    shift = find_checkpoint(config.model, config.revision).shift
    task = named_task(config)
    methods = resolve_methods(choice, task, config.reading, shift=shift)
    base = plan_decode(config, task)
    for method in methods:
        method.commit_rule.check(base.shape, shift=shift)
    return base, methods


def resolve_methods(
    choice: MethodChoice, task: Task, reading: AnswerReading | None = None, *, shift: bool = False
) -> list[ResolvedMethod]:
    """The chosen methods with every parameter: the paper's, the calibration's, the user's."""
    reading = reading or AnswerReading()
    methods = find_methods(choice.methods)
    if choice.label is not None and len(methods) != 1:
        raise ConfigError(f"--label {choice.label} names one method; {len(methods)} chosen")
    settings = parse_settings(choice.settings)
    _check_taken(methods, settings)
    frozen = _frozen(choice, methods, reading)
    resolved = []
    for name, method in methods.items():
        changes = _changes(name, method, settings)
        if method.gate is not None:
            changes[method.gate] = frozen.get(method.gate, {}) | changes.get(method.gate, {})
        method_now = _resolve(name, method, changes, task, shift, reading)
        label = _checked_label(choice.label, method_now.label)
        resolved.append(replace(method_now, label=label))
    return resolved


def _resolve(
    name: str,
    method: Method,
    changes: Mapping[str, Mapping[str, Any]],
    task: Task,
    shift: bool,
    reading: AnswerReading,
) -> ResolvedMethod:
    paper = rule_settings(method, task, shift=shift)
    rule = make_rule(method.rule, paper | dict(changes.get(method.rule, {})))
    forward = Forward(**typed_parameters(FORWARD, Forward, changes.get(FORWARD, {})))
    changed = _changed(method.rule, asdict(rule), asdict(make_rule(method.rule, paper)))
    changed |= _changed(FORWARD, asdict(forward), asdict(Forward()))
    resolved = ResolvedMethod(
        name=name,
        typed=_typed(method),
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
        gate_source=find_gate(method.gate).identity,
        gate_settings=set_parameters(gate),
        make_gate=LiveGates(gate, reading),
        reading=reading,
    )


def _typed(method: Method) -> str | None:
    """What a user types for a method, if its results go by less because files stand in folders."""
    parts = [part for part in (method.rule, method.gate) if part is not None]
    if all(canonical_name(part) == part for part in parts):
        return None
    return spell_method(method, as_typed=True)


@dataclass(frozen=True)
class LiveGates:
    """Makes the same gate for each decode.

    The reader is new every time too: what it remembers of one decode would make the next one of
    the same example cheaper than it is.
    """

    gate: Gate
    reading: AnswerReading

    def __call__(
        self, task: Task, vocabulary: Vocabulary, shape: Shape, choices: Choices
    ) -> ExitGate:
        reader = CandidateReader(task, vocabulary, shape.length, self.reading)
        return LiveGate(self.gate, shape, reader, choices)


def parts_of(method: Method) -> list[str]:
    """The parts of a method that have parameters."""
    gate = [] if method.gate is None else [method.gate]
    return [method.rule, *gate, FORWARD]


def takers(setting: Change, name: str, method: Method) -> list[str]:
    """The parts of a method that a setting speaks of and that have such a parameter."""
    parts = parts_of(method)
    whole = setting.part is None or (setting.part == name and name not in parts)
    spoken_of = [part for part in parts if whole or setting.part in _owners(name, part)]
    return [part for part in spoken_of if setting.name in parameters_of(part)]


def _owners(name: str, part: str) -> set[str]:
    """What a setting may call a part of a method: `cvee`, or `c4.cvee` to name the method too."""
    return {owner for short in aliases(part) for owner in (short, f"{name}.{short}")}


def parameters_of(part: str) -> list[str]:
    """What can be set in a part."""
    if part == FORWARD:
        return [spec.name for spec in settable(Forward)]
    registry = RULE_NAMES if part in RULE_NAMES.names else GATE_NAMES
    kind: Any = registry.find(part).found
    made_here = isinstance(kind, type) and is_dataclass(kind)  # and not ready-made
    return [spec.name for spec in settable(kind)] if made_here else []


def _check_taken(methods: Mapping[str, Method], settings: Sequence[Change]) -> None:
    """Every setting must reach some chosen method, and only one part of it."""
    for setting in settings:
        taken = {name: takers(setting, name, method) for name, method in methods.items()}
        for name, parts in taken.items():
            if len(parts) > 1:
                ways = " or ".join(str(replace(setting, part=part)) for part in parts)
                raise ConfigError(
                    f"--set {setting}: {name} has a {setting.name} in each of "
                    f"{' and '.join(parts)}; write {ways}"
                )
        if not any(taken.values()):
            raise _not_taken(setting, methods)


def _not_taken(setting: Change, methods: Mapping[str, Method]) -> ConfigError:
    parts = {part for method in methods.values() for part in parts_of(method)}
    known = {part: parameters_of(part) for part in sorted(parts)}
    near = did_you_mean(setting.name, [name for names in known.values() for name in names])
    have = ", ".join(f"{canonical_name(part)}.{name}" for part in known for name in known[part])
    return ConfigError(
        f"--set {setting}: no chosen method takes that; {near and f'{near} '}there is {have}"
    )


def _changes(name: str, method: Method, settings: Sequence[Change]) -> dict[str, dict[str, Any]]:
    """What the user sets in a method, by part, as it is written."""
    changes: dict[str, dict[str, Any]] = {}
    for setting in settings:
        for part in takers(setting, name, method):
            changes.setdefault(part, {})[setting.name] = setting.value
    return changes


def _frozen(
    choice: MethodChoice, methods: Mapping[str, Method], reading: AnswerReading
) -> dict[str, dict[str, Any]]:
    """The calibrated parameters, under the name of their gate."""
    if choice.calibration is None:
        return {}
    frozen = load_calibration(choice.calibration)
    frozen.check_reading(reading)
    typed = [method.gate for method in methods.values() if method.gate is not None]
    mine = [gate for gate in dict.fromkeys(typed) if GATE_NAMES.canonical(gate) == frozen.gate]
    if not mine:
        raise ConfigError(
            f"{choice.calibration} is about {frozen.gate}, and no chosen method has it"
        )
    for gate in mine:
        frozen.check_source(gate)
    return {gate: dict(frozen.chosen) for gate in mine}


def _changed(
    part: str, now: Mapping[str, Any], paper: Mapping[str, Any]
) -> dict[tuple[str, str], Any]:
    """The parameters that are not the paper's."""
    now, paper = (plain_settings(canonical_name(part), values) for values in (now, paper))
    return {(part, name): value for name, value in now.items() if value != paper[name]}


def _checked_label(wanted: str | None, derived: str) -> str:
    """The user's label, which may not pass for a method, or a setting of one, that it is not."""
    if wanted is None or wanted == derived:
        return derived
    if not wanted.strip(" ."):
        raise ConfigError(f"--label {wanted!r} is no name; results could not be told apart by it")
    name = Label.parse(wanted).method
    if name in METHODS or OF_USERS.fullmatch(name):
        raise ConfigError(
            f"--label {wanted} would pass for the method {name}, and this is {derived}; choose a "
            "label that does not begin with a method's name"
        )
    return wanted


def _label(
    name: str,
    method: Method,
    changed: Mapping[tuple[str, str], Any],
    of_reading: tuple[Change, ...] = (),
) -> str:
    """The method's name, and what was changed: `c4,H=2`."""
    parts = parts_of(method)
    changes = []
    for (part, parameter), value in changed.items():
        alone = sum(parameter in parameters_of(p) for p in parts) == 1
        shown = f"{value:g}" if isinstance(value, float) else str(value).lower()
        changes.append(Change(None if alone else canonical_name(part), parameter, shown))
    return str(Label(name, (*changes, *of_reading)))
