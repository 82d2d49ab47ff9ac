"""Methods: a commit rule and an exit gate under one name, with the paper's settings.

A gate is only named here: gates live in another room, and whoever decodes brings them along.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from c4.decode.commits import Rule
from c4.decode.forward import Forward
from c4.decode.rules.cctc import CCTC
from c4.decode.rules.klass import KLASS
from c4.decode.rules.schedule import Schedule
from c4.decode.rules.slowfast import SlowFast
from c4.decode.rules.threshold import Threshold
from c4.decode.rules.wino import WINO
from c4.errors import NotReplayable
from c4.store.labels import BASELINE, is_baseline
from c4.store.parameters import typed_parameters
from c4.store.views import ExitGate
from c4.store.vocabulary import Vocabulary
from c4.tasks import AnswerReading, Family, Shape, Task
from c4.tasks.task import Choices

RULES: dict[str, type[Rule]] = {
    "schedule": Schedule,
    "cctc": CCTC,
    "threshold": Threshold,
    "klass": KLASS,
    "slowfast": SlowFast,
    "wino": WINO,
}


@dataclass(frozen=True)
class Method:
    """A named pair of a commit rule and an exit gate."""

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
    kind = RULES[name]
    return kind(**typed_parameters(name, kind, params))


GateMaker = Callable[[Task, Vocabulary, Shape, Choices], ExitGate]
"""Makes a gate for one decode. It may know nothing of the example but its choices."""


@dataclass(frozen=True, kw_only=True)
class ResolvedMethod:
    """A method with every parameter resolved, ready to decode."""

    name: str
    """One of `METHODS`."""
    label: str
    """Label of its results: the method's name, and what was changed."""
    rule_name: str
    rule: Rule
    gate_name: str | None = None
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
    def is_baseline(self) -> bool:
        """Whether this is the full decode that others are compared with, whatever its label."""
        return is_baseline(self.identity)

    @property
    def identity(self) -> dict[str, Any]:
        """What decides its numbers, as a manifest keeps it."""
        gate = None
        if self.gate_name is not None:
            gate = {"name": self.gate_name, **plain(self.gate_settings)}
            gate["reading"] = self.reading.of_signals
        return {
            "method": self.name,
            "label": self.label,
            "rule": {"name": self.rule_name, **plain(asdict(self.rule))},
            "gate": gate,
            "forward": asdict(self.forward),
        }


def plain(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings in a form that JSON can hold; JSON has no infinity."""
    return {k: "inf" if v == math.inf else v for k, v in settings.items()}


FULL_DECODE = ResolvedMethod(name=BASELINE, label=BASELINE, rule_name="schedule", rule=Schedule())
"""The baseline, which `c4 record` records."""


def refuse_sampler(name: str, task: str = "TASK") -> None:
    """Refuse a method that cannot be replayed, and say what to type instead."""
    if name in METHODS and METHODS[name].rule != "schedule":
        gates = [m.gate for m in METHODS.values() if m.rule == "schedule" and m.gate]
        raise NotReplayable(
            f"{name} changes which steps exist, so a recording cannot answer for it; "
            f"decode live instead: c4 run --method {name} --task {task}; exit gates can be "
            f"replayed: {', '.join(gates)}"
        )
