"""The commit rules, one file each, and the names under which users select them."""

from collections.abc import Mapping
from typing import Any

from c4.decode.commits import Rule
from c4.decode.rules.cctc import CCTC
from c4.decode.rules.klass import KLASS
from c4.decode.rules.schedule import Schedule
from c4.decode.rules.slowfast import SlowFast
from c4.decode.rules.threshold import Threshold
from c4.decode.rules.wino import WINO
from c4.errors import ConfigError, naming_failures, shortened
from c4.plugins import Registry
from c4.plugins.parameters import typed_parameters

RULES: dict[str, type[Rule]] = {
    "schedule": Schedule,
    "cctc": CCTC,
    "threshold": Threshold,
    "klass": KLASS,
    "slowfast": SlowFast,
    "wino": WINO,
}


def is_rule(found: Any) -> bool:
    """Whether an object is a commit rule or a class of commit rules."""
    return issubclass(found if isinstance(found, type) else type(found), Rule)


REGISTRY = Registry("rule", "--method", RULES, example="my_rules:Greedy")
"""Every commit rule that a user can name."""


def make_rule(name: str, params: Mapping[str, Any]) -> Rule:
    """Make a rule by name; unknown parameters are refused."""
    kind = REGISTRY.find(name).found
    if not is_rule(kind):
        raise ConfigError(f"{name} is not a commit rule: name a class derived from c4.decode.Rule")
    if isinstance(kind, Rule):
        if params:
            raise ConfigError(f"{name} is a ready-made rule and takes no parameters")
        return kind
    typed = typed_parameters(name, kind, params)
    with naming_failures(f"cannot make the rule {shortened(name)!r}"):
        made: Rule = kind(**typed)
    return made
