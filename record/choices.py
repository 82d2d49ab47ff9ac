"""Methods with their gates: turns names and settings into something that can decode.

A setting, which `store/labels.py` reads, may name the part that has it, and the method before that:
`NAME=VALUE`, `PART.NAME=VALUE` or `METHOD.PART.NAME=VALUE`, where a part is a rule, a gate or
`forward`, the forward pass that every method has. `METHOD.NAME=VALUE` is enough where only one part
of the method has that name.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

from c4.decode.forward import Forward
from c4.errors import ConfigError, unknown_name
from c4.gates.candidates import CandidateReader
from c4.gates.kinds import GATES, OwnGate
from c4.gates.live import LiveGate
from c4.gates.registry import make_gate
from c4.models import find_checkpoint
from c4.record.methods import (
    METHODS,
    RULES,
    Method,
    ResolvedMethod,
    make_rule,
    rule_settings,
)
from c4.record.plan import Plan, RunConfig, plan_decode, plan_run
from c4.replay.calibration import load_calibration
from c4.store.labels import Change, Label, parse_settings, reading_changes
from c4.store.locations import Location
from c4.store.parameters import typed_parameters
from c4.store.views import ExitGate
from c4.store.vocabulary import Vocabulary
from c4.tasks import AnswerReading, Shape, Task, get_task
from c4.tasks.task import Choices

FORWARD = "forward"
"""Name of the part of every method that is neither rule nor gate."""


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
    for name in choice.methods:
        check_method(name)
    # Names and settings before anything that takes long.
    shift = find_checkpoint(config.model, config.revision).shift
    methods = resolve_methods(choice, get_task(config.task), config.reading, shift=shift)
    base = plan_decode(config)
    for method in methods:
        method.rule.check(base.shape, shift=shift)
    return base, methods


def check_method(name: str) -> None:
    """Refuse the name of a method that does not exist."""
    if name not in METHODS:
        raise unknown_name("method", name, METHODS)


def resolve_methods(
    choice: MethodChoice, task: Task, reading: AnswerReading | None = None, *, shift: bool = False
) -> list[ResolvedMethod]:
    """The chosen methods with every parameter: the paper's, the calibration's, the user's."""
    reading = reading or AnswerReading()
    if choice.label is not None and len(choice.methods) != 1:
        raise ConfigError(f"--label {choice.label} names one method; {len(choice.methods)} chosen")
    settings = parse_settings(choice.settings)
    _check_taken(choice.methods, settings)
    frozen = _frozen(choice, reading)
    resolved = []
    for name in choice.methods:
        method = METHODS[name]
        changes = _changes(name, settings)
        if method.gate is not None:
            changes[method.gate] = frozen.get(method.gate, {}) | changes.get(method.gate, {})
        method_now = _resolve(name, changes, task, shift, reading)
        label = _checked_label(choice.label, method_now.label)
        resolved.append(replace(method_now, label=label))
    return resolved


def _resolve(
    name: str,
    changes: Mapping[str, Mapping[str, Any]],
    task: Task,
    shift: bool,
    reading: AnswerReading,
) -> ResolvedMethod:
    method = METHODS[name]
    paper = rule_settings(method, task, shift=shift)
    rule = make_rule(method.rule, paper | dict(changes.get(method.rule, {})))
    forward = Forward(**typed_parameters(FORWARD, Forward, changes.get(FORWARD, {})))
    changed = _changed(method.rule, rule, make_rule(method.rule, paper))
    changed |= _changed(FORWARD, forward, Forward())
    if method.gate is None:
        label = _label(name, method, changed)
        return ResolvedMethod(
            name=name, label=label, rule_name=method.rule, rule=rule, forward=forward
        )
    gate: Any = make_gate(method.gate, task.family, **changes.get(method.gate, {}))
    changed |= _changed(method.gate, gate, make_gate(method.gate, task.family))
    return ResolvedMethod(
        name=name,
        label=_label(name, method, changed, reading_changes(reading, AnswerReading())),
        rule_name=method.rule,
        rule=rule,
        gate_name=method.gate,
        gate_settings=asdict(gate),
        make_gate=LiveGates(gate, reading),
        reading=reading,
        forward=forward,
    )


@dataclass(frozen=True)
class LiveGates:
    """Makes the same gate for each decode.

    The reader is new every time too: what it remembers of one decode would make the next one of
    the same example cheaper than it is.
    """

    gate: OwnGate
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
    owners = [] if setting.part is None else setting.part.split(".")
    if owners and owners[0] == name and (len(owners) > 1 or name not in parts):
        owners.pop(0)
    wanted = [part for part in parts if owners in ([], [part])]
    return [part for part in wanted if setting.name in parameters_of(part)]


def parameters_of(part: str) -> list[str]:
    """What can be set in a part."""
    kind = Forward if part == FORWARD else RULES.get(part) or GATES[part]
    return [spec.name for spec in fields(kind)]


def _check_taken(methods: Sequence[str], settings: Sequence[Change]) -> None:
    """Every setting must reach some chosen method, and only one part of it."""
    for setting in settings:
        taken = {name: takers(setting, name, METHODS[name]) for name in methods}
        for name, parts in taken.items():
            if len(parts) > 1:
                ways = " or ".join(str(replace(setting, part=part)) for part in parts)
                raise ConfigError(
                    f"--set {setting}: {name} has a {setting.name} in each of "
                    f"{' and '.join(parts)}; write {ways}"
                )
        if not any(taken.values()):
            have = ", ".join(_settable(methods))
            raise ConfigError(f"--set {setting}: no chosen method takes that; there is {have}")


def _settable(methods: Sequence[str]) -> list[str]:
    parts = {part for name in methods for part in parts_of(METHODS[name])}
    return [f"{part}.{name}" for part in sorted(parts) for name in parameters_of(part)]


def _changes(name: str, settings: Sequence[Change]) -> dict[str, dict[str, Any]]:
    """What the user sets in a method, by part, as it is written."""
    changes: dict[str, dict[str, Any]] = {}
    for setting in settings:
        for part in takers(setting, name, METHODS[name]):
            changes.setdefault(part, {})[setting.name] = setting.value
    return changes


def _frozen(choice: MethodChoice, reading: AnswerReading) -> dict[str, dict[str, Any]]:
    """The calibrated parameters, under the name of their gate."""
    if choice.calibration is None:
        return {}
    frozen = load_calibration(choice.calibration)
    frozen.check_reading(reading)
    if not any(METHODS[name].gate == frozen.gate for name in choice.methods):
        raise ConfigError(
            f"{choice.calibration} is about {frozen.gate}, and no chosen method has it"
        )
    return {frozen.gate: dict(frozen.chosen)}


def _changed(part: str, now: Any, paper: Any) -> dict[tuple[str, str], Any]:
    """The parameters that are not the paper's."""
    return {
        (part, name): value for name, value in asdict(now).items() if value != getattr(paper, name)
    }


def _checked_label(wanted: str | None, derived: str) -> str:
    """The user's label, which may not pass for a method, or a setting of one, that it is not."""
    if wanted is None or wanted == derived:
        return derived
    if not wanted.strip(" ."):
        raise ConfigError(f"--label {wanted!r} is no name; results could not be told apart by it")
    name = Label.parse(wanted).method
    if name in METHODS:
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
        changes.append(Change(None if alone else part, parameter, shown))
    return str(Label(name, (*changes, *of_reading)))
