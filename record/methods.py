"""Methods: a commit rule and an exit gate under one name, with the paper's settings.

A rule or a gate of a user's own takes part under the name that the user gives it.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from c4.decode.commits import Rule
from c4.decode.forward import Forward
from c4.decode.guard import GuardedRule
from c4.decode.rules.cctc import CCTC
from c4.decode.rules.klass import KLASS
from c4.decode.rules.schedule import Schedule
from c4.decode.rules.slowfast import SlowFast
from c4.decode.rules.threshold import Threshold
from c4.decode.rules.wino import WINO
from c4.errors import RAISED, C4Error, ConfigError, NotReplayable, failure, shortened
from c4.gates.gate import is_gate
from c4.gates.registry import REGISTRY as GATE_NAMES
from c4.gates.steps import ExitGate
from c4.plugins import Registry, names_file, unknown_object
from c4.plugins.parameters import plain_settings, typed_parameters
from c4.store.labels import BASELINE
from c4.store.manifest import is_baseline
from c4.tasks import AnswerReading, Family, Shape, Task
from c4.tasks.task import Choices
from c4.tasks.vocabulary import Vocabulary

RULES: dict[str, type[Rule]] = {
    "schedule": Schedule,
    "cctc": CCTC,
    "threshold": Threshold,
    "klass": KLASS,
    "slowfast": SlowFast,
    "wino": WINO,
}
SCHEDULE = "schedule"
"""Name of the rule that decodes where a user names a gate alone."""


def is_rule(found: Any) -> bool:
    """Whether an object is a commit rule, or a class of them."""
    return issubclass(found if isinstance(found, type) else type(found), Rule)


RULE_NAMES = Registry("rule", "--method", RULES, example="my_rules:Greedy", fits=is_rule)
"""Every commit rule that a user can name."""
METHOD_NAMES = Registry(
    "method", "--method", {}, "my_rules:Greedy", fits=lambda x: is_rule(x) or is_gate(x)
)
"""Loads what may be a rule or a gate."""


@dataclass(frozen=True)
class Method:
    """A pair of a commit rule and an exit gate, by the names that a user can give them."""

    rule: str
    gate: str | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Parameters of the rule that differ from the rule's own defaults."""


METHODS: dict[str, Method] = {
    "baseline": Method("schedule"),
    "prophet": Method("schedule", "prophet"),
    "sched": Method("schedule", "sched"),
    "confidence": Method("schedule", "confidence"),
    "stability": Method("schedule", "stability"),
    "fixed-patience": Method("schedule", "fixed-patience"),
    "cvee": Method("schedule", "cvee"),
    "cctc-core": Method("cctc", "cvee", {"confirm": False, "blocks": "not-last"}),
    "cctc": Method("cctc", "cvee", {"blocks": "not-last"}),
    "c4": Method("cctc", "cvee"),
    "fast-dllm": Method("threshold"),
    "klass": Method("klass"),
    "slowfast": Method("slowfast"),
    "wino": Method("wino"),
    "wino+cvee": Method("wino", "cvee"),
}
"""Every method by its name. From cvee to c4 each adds one thing: this is the ablation."""

BY_FAMILY: dict[str, dict[Family, dict[str, float]]] = {
    "klass": {
        Family.LETTERS: {"tau": 0.7, "epsilon": 0.015},
        Family.LONG_REASONING: {"tau": 0.6, "epsilon": 0.015},
    },
    "wino": {Family.LETTERS: {"tau": 0.5}, Family.LONG_REASONING: {"tau": 0.6}},
}
BY_TASK: dict[str, dict[str, dict[str, float]]] = {
    "klass": {
        "humaneval": {"tau": 0.9, "epsilon": 0.01},
        "mbpp": {"tau": 0.7, "epsilon": 0.01},
    },
    "wino": {"math": {"tau": 0.7}, "humaneval": {"tau": 0.7}, "mbpp": {"tau": 0.8}},
}
ON_SHIFTED: dict[str, dict[str, dict[str, float]]] = {
    "klass": {
        "humaneval": {"tau": 0.8, "epsilon": 0.001},
        "mbpp": {"tau": 0.9, "epsilon": 0.001},
    },
}
"""Table 3 of the paper. The other rules have one setting for all tasks: their defaults."""


def rule_settings(method: Method, task: Task, *, shift: bool = False) -> dict[str, Any]:
    """The paper's parameters of a method's rule on a task."""
    rule = method.rule
    settings: dict[str, Any] = dict(BY_FAMILY.get(rule, {}).get(task.family, {}))
    settings |= BY_TASK.get(rule, {}).get(task.name, {})
    if shift:
        settings |= ON_SHIFTED.get(rule, {}).get(task.name, {})
    return settings | dict(method.settings)


def make_rule(name: str, params: Mapping[str, Any]) -> Rule:
    """A rule by name; unknown parameters are refused."""
    kind = RULE_NAMES.find(name).found
    if not is_rule(kind):
        raise ConfigError(f"{name} is no commit rule: name a class derived from c4.decode.Rule")
    if isinstance(kind, Rule):
        if params:
            raise ConfigError(f"{name} is a ready-made rule and takes no parameters")
        return kind
    typed = typed_parameters(name, kind, params)
    try:
        made: Rule = kind(**typed)
    except C4Error:
        raise
    except RAISED as error:
        raise ConfigError(f"cannot make the rule {shortened(name)!r}: {failure(error)}") from error
    return made


def find_methods(names: Iterable[str]) -> dict[str, Method]:
    """The methods that a user names, by what their results go by.

    A name is one of `METHODS`, a rule, a gate (which then ends the schedule), or `rule+gate`.
    """
    found: dict[str, tuple[str, Method]] = {}
    for name in names:
        method = find_method(name)
        usual = (known for known, pair in METHODS.items() if pair == method)
        short = next(usual, None) or spell_method(method)
        first, _ = found.setdefault(short, (name, method))
        if found[short][1] != method:
            raise ConfigError(
                f"--method {name}: results of it and of {first} would both go by {short}; rename "
                "one of the files"
            )
    return {short: method for short, (_, method) in found.items()}


def find_method(name: str) -> Method:
    """The rule and the gate that a user names. What is not c4's own is loaded, which runs code."""
    if name in METHODS:
        return METHODS[name]
    for rule, gate in _splits(name):
        without_gate = METHODS.get(rule)
        if without_gate is not None and without_gate.gate is None:
            return replace(without_gate, gate=gate)
        if RULE_NAMES.knows(rule):
            return Method(rule, gate)
    if name in RULE_NAMES.names:
        return Method(name)
    if name in GATE_NAMES.names:
        return Method(SCHEDULE, name)
    if "+" in name and not names_file(name):
        raise _unknown_half(name)
    if ":" not in name:
        names = dict.fromkeys([*METHODS, *RULE_NAMES.names, *GATE_NAMES.names])
        also = "or one of your own: rule+gate, module:object, path/to/file.py:object"
        raise unknown_object("method", name, names, also=also)
    found = METHOD_NAMES.find(name).found
    return Method(SCHEDULE, name) if is_gate(found) else Method(name)


def _unknown_half(name: str) -> ConfigError:
    """An error that says which half of `rule+gate` there is not."""
    pairs = list(_pairs(name))
    known = [pair for pair in pairs if _knows_rule(pair[0]) or GATE_NAMES.knows(pair[1])]
    rule, gate = (known or pairs)[0]
    if _knows_rule(gate) and GATE_NAMES.knows(rule):
        return ConfigError(f"--method {name}: the rule comes first: {gate}+{rule}")
    ended = METHODS.get(rule)
    if ended is not None and ended.gate is not None and GATE_NAMES.knows(gate):
        return ConfigError(
            f"--method {name}: {rule} has the gate {ended.gate} already; name its rule instead: "
            f"{ended.rule}+{gate}"
        )
    also = f"in {shortened(name)!r}; or one of your own: module:object, path/to/file.py:object"
    if _knows_rule(rule):
        return unknown_object("gate", gate, GATE_NAMES.names, also=also)
    rules = [known for known in dict.fromkeys([*RULE_NAMES.names, *METHODS]) if _knows_rule(known)]
    return unknown_object("rule", rule, rules, also=also)


def _knows_rule(name: str) -> bool:
    """Whether a name is that of a rule, or of a method that is nothing but a rule."""
    return RULE_NAMES.knows(name) or (name in METHODS and METHODS[name].gate is None)


def _splits(name: str) -> Iterator[tuple[str, str]]:
    """The pairs of a rule and a gate that are known, of those that a name can be read as."""
    for rule, gate in _pairs(name):
        if GATE_NAMES.knows(gate) and (RULE_NAMES.knows(rule) or rule in METHODS):
            yield rule, gate


def _pairs(name: str) -> Iterator[tuple[str, str]]:
    """The pairs that a name can be read as; a path may have a plus too."""
    pieces = name.split("+")
    for i in range(1, len(pieces)):
        yield "+".join(pieces[:i]), "+".join(pieces[i:])


def spell_method(method: Method, *, as_typed: bool = False) -> str:
    """What the results of a pair go by: `wino+my_gates:Calm`; the schedule is not named.

    Args:
        as_typed: keep the folders of files, as a user types them.
    """
    known = {pair.rule: name for name, pair in METHODS.items() if pair.gate is None}
    rule = known.get(method.rule) or (
        method.rule if as_typed else RULE_NAMES.canonical(method.rule)
    )
    if method.gate is None:
        return rule
    gate = method.gate if as_typed else GATE_NAMES.canonical(method.gate)
    return gate if method.rule == SCHEDULE else f"{rule}+{gate}"


GateMaker = Callable[[Task, Vocabulary, Shape, Choices], ExitGate]
"""Makes a gate for one decode. It may know nothing of the example but its choices."""


@dataclass(frozen=True, kw_only=True)
class ResolvedMethod:
    """A method with every parameter resolved, ready to decode."""

    name: str
    """One of `METHODS`, or what a pair of the user's own goes by."""
    typed: str | None = None
    """As a user names it, where that is longer because files stand in folders."""
    label: str
    """Label of its results: the method's name, and what was changed."""
    rule_name: str
    rule: Rule
    rule_source: Mapping[str, str] = field(default_factory=dict)
    """A hash of the rule's source, if it is a user's own."""
    gate_name: str | None = None
    gate_source: Mapping[str, str] = field(default_factory=dict)
    """The same of the gate."""
    gate_settings: Mapping[str, Any] = field(default_factory=dict)
    make_gate: GateMaker | None = None
    forward: Forward = field(default_factory=Forward)
    reading: AnswerReading = field(default_factory=AnswerReading)
    """How its gate reads answers, if it has one."""

    def new_gate(
        self, task: Task, vocabulary: Vocabulary, shape: Shape, choices: Choices
    ) -> ExitGate | None:
        """The gate for one decode, if the method has one."""
        return None if self.make_gate is None else self.make_gate(task, vocabulary, shape, choices)

    @property
    def commit_rule(self) -> Rule | GuardedRule:
        """The rule that decodes; a user's own is watched."""
        return GuardedRule(self.rule) if self.rule_source else self.rule

    @property
    def is_baseline(self) -> bool:
        """Whether this is the full decode that others are compared with, whatever its label."""
        return is_baseline(self.identity)

    @property
    def identity(self) -> dict[str, Any]:
        """What decides its numbers, as a manifest keeps it."""
        gate = None
        if self.gate_name is not None:
            settings = plain_settings(self.gate_name, self.gate_settings)
            gate = {"name": self.gate_name, **settings, **self.gate_source}
            gate["reading"] = self.reading.of_signals
        rule = plain_settings(self.rule_name, asdict(self.rule))
        return {
            "method": self.name,
            "label": self.label,
            "rule": {"name": self.rule_name, **rule, **self.rule_source},
            "gate": gate,
            "forward": asdict(self.forward),
        }


FULL_DECODE = ResolvedMethod(name=BASELINE, label=BASELINE, rule_name="schedule", rule=Schedule())
"""The baseline, which `c4 record` records."""


def _is_sampler(name: str) -> bool:
    if name in METHODS:
        return METHODS[name].rule != SCHEDULE
    return ":" in name and is_rule(GATE_NAMES.find(name).found)


def refuse_sampler(name: str, task: str = "TASK") -> None:
    """Refuse a method that cannot be replayed, and say what to type instead."""
    if _is_sampler(name):
        gates = [m.gate for m in METHODS.values() if m.rule == "schedule" and m.gate]
        raise NotReplayable(
            f"{name} changes which steps exist, so a recording cannot answer for it; "
            f"decode live instead: c4 run --method {name} --task {task}; exit gates can be "
            f"replayed: {', '.join(gates)}"
        )
