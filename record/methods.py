"""Methods: a commit rule and an exit gate under one name, with the paper's settings.

A user's own rule or gate can be part of a method, under the name that the user typed.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from c4.decode.commits import Rule
from c4.decode.forward import Forward
from c4.decode.guard import GuardedRule
from c4.decode.rules import REGISTRY as RULE_NAMES
from c4.decode.rules import is_rule
from c4.decode.rules.schedule import Schedule
from c4.errors import ConfigError, NotReplayable, shortened
from c4.gates.candidates import CandidateReader
from c4.gates.gate import Gate, is_gate
from c4.gates.live import LiveGate
from c4.gates.registry import REGISTRY as GATE_NAMES
from c4.gates.steps import ExitGate
from c4.plugins import Registry, names_file, unknown_object
from c4.plugins.parameters import plain_settings
from c4.store.labels import BASELINE
from c4.store.manifest import is_baseline
from c4.tasks import AnswerReading, Family, Shape, Task
from c4.tasks.task import Choices
from c4.tasks.vocabulary import Vocabulary

SCHEDULE = "schedule"
"""Name of the rule that decodes if a user names only a gate."""


@dataclass(frozen=True)
class Method:
    """A pair of a commit rule and an optional exit gate, by their names."""

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
"""Every method by its name. From cvee to c4, each adds one component: the paper's ablation."""

METHOD_NAMES = Registry("method", "--method", METHODS, "my_rules:Greedy")
"""Loads user objects that may be a rule or a gate."""

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
"""Settings of Table 3 of the paper. All other rules use their defaults on every task."""


def rule_settings(method: Method, task: Task, *, shift: bool = False) -> dict[str, Any]:
    """Return the paper's parameters of a method's rule on a task."""
    rule = method.rule
    settings: dict[str, Any] = dict(BY_FAMILY.get(rule, {}).get(task.family, {}))
    settings |= BY_TASK.get(rule, {}).get(task.name, {})
    if shift:
        settings |= ON_SHIFTED.get(rule, {}).get(task.name, {})
    return settings | dict(method.settings)


def find_methods(names: Iterable[str]) -> dict[str, Method]:
    """Find the methods that a user names, by the names of their results.

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
    """Find the rule and gate that a user names. Loading a user's own objects runs their code."""
    if name in METHODS:
        return METHODS[name]
    for rule, gate in _pairs(name):
        if GATE_NAMES.knows(gate) and _knows_rule(rule):
            known = METHODS.get(rule)
            alone = known if known is not None and known.gate is None else Method(rule)
            return replace(alone, gate=gate)
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
    """Return an error about the half of `rule+gate` that is unknown or misplaced."""
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
    """Whether a name is that of a rule, or of a method without a gate."""
    return RULE_NAMES.knows(name) or (name in METHODS and METHODS[name].gate is None)


def _pairs(name: str) -> Iterator[tuple[str, str]]:
    """Yield all splits of a name into a rule and a gate; a path may contain a plus, too."""
    pieces = name.split("+")
    for i in range(1, len(pieces)):
        yield "+".join(pieces[:i]), "+".join(pieces[i:])


def spell_method(method: Method, *, as_typed: bool = False) -> str:
    """Return the name of a method's results, such as `wino+my_gates:Calm`, without the schedule.

    Args:
        as_typed: keep the folders of files.
    """
    known = {pair.rule: name for name, pair in METHODS.items() if pair.gate is None}
    rule = known.get(method.rule) or (
        method.rule if as_typed else RULE_NAMES.canonical(method.rule)
    )
    if method.gate is None:
        return rule
    gate = method.gate if as_typed else GATE_NAMES.canonical(method.gate)
    return gate if method.rule == SCHEDULE else f"{rule}+{gate}"


@dataclass(frozen=True, kw_only=True)
class ResolvedMethod:
    """A method with every parameter resolved, ready to decode."""

    name: str
    """One of `METHODS`, or the name of the user's own pair."""
    typed: str | None = None
    """The name as the user typed it, if it contains folders that `name` omits."""
    label: str
    """Label of its results: the method's name and the changed parameters."""
    rule_name: str
    rule: Rule
    rule_source: Mapping[str, str] = field(default_factory=dict)
    """A hash of the rule's source, if it is a user's own."""
    gate_name: str | None = None
    gate_source: Mapping[str, str] = field(default_factory=dict)
    """A hash of the gate's source, if it is a user's own."""
    gate_settings: Mapping[str, Any] = field(default_factory=dict)
    gate: Gate | None = None
    forward: Forward = field(default_factory=Forward)
    reading: AnswerReading = field(default_factory=AnswerReading)
    """Answer reading of its gate, if it has one."""

    def new_gate(
        self, task: Task, vocabulary: Vocabulary, shape: Shape, choices: Choices
    ) -> ExitGate | None:
        """Make the gate for one decode; None if the method has none.

        Each gate gets a new reader, because a reader's cache from one decode would reduce the
        measured time of the next decode of the same example.
        """
        if self.gate is None:
            return None
        reader = CandidateReader(task, vocabulary, shape.length, self.reading)
        return LiveGate(self.gate, shape, reader, choices)

    @property
    def commit_rule(self) -> Rule:
        """The rule that decodes; a user's own rule is guarded."""
        return GuardedRule(self.rule) if self.rule_source else self.rule

    @property
    def is_baseline(self) -> bool:
        """Whether this is the full decode that other methods are compared with, under any label."""
        return is_baseline(self.identity)

    @property
    def identity(self) -> dict[str, Any]:
        """The part of a manifest's identity that determines the method's results."""
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
"""The baseline; `c4 record` records it."""


def refuse_sampler(name: str, task: str = "TASK") -> None:
    """Refuse a method that cannot be replayed, and suggest a command instead."""
    if name in METHODS:
        is_sampler = METHODS[name].rule != SCHEDULE
    else:
        is_sampler = ":" in name and is_rule(GATE_NAMES.find(name).found)
    if is_sampler:
        gates = [m.gate for m in METHODS.values() if m.rule == SCHEDULE and m.gate]
        raise NotReplayable(
            f"{name} changes which steps exist, so a recording cannot answer for it; "
            f"decode live instead: c4 run --method {name} --task {task}; exit gates can be "
            f"replayed: {', '.join(gates)}"
        )
