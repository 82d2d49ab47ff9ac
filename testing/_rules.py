"""The contract of a commit rule."""

from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np

from c4.decode.commits import Rule
from c4.decode.guard import PASSES_PER_POSITION, GuardedRule
from c4.errors import RAISED, C4Error, ConfigError, failure
from c4.plugins.parameters import plain_settings
from c4.record.methods import make_rule
from c4.store.arrays import BoolArray, IntArray
from c4.tasks import Shape
from c4.testing._contract import require

if TYPE_CHECKING:
    from torch import Tensor

    from c4.models import Reading

SHAPES = (
    Shape(length=8, budget=8, block_length=4),
    Shape(length=12, budget=6, block_length=4),
    Shape(length=6, budget=6, block_length=6),
)
PROMPT = np.array([1, 2, 3])
VOCABULARY, MASK = 11, 10


def check_rule(rule: Rule | type[Rule] | str) -> None:
    """Check a commit rule: a name as commands take it, a class with defaults, or an object.

    It must be derived from `c4.decode.Rule`, have parameters that a manifest can keep, fill every
    block from left to right, choose only what it may, come to an end, and decode alike when the
    same rule is put to work again.

    Raises:
        BrokenPlugin: says what is broken.
    """
    name = rule if isinstance(rule, str) else getattr(rule, "__name__", type(rule).__name__)
    require("rule", name, _findings(rule))


def _made(rule: Any) -> Rule:
    if isinstance(rule, str):
        return make_rule(rule, {})
    try:
        made: Any = rule() if isinstance(rule, type) else rule
    except RAISED as error:
        raise ConfigError(f"it cannot be made without arguments: {failure(error)}") from error
    if not isinstance(made, Rule):
        raise ConfigError("it is not derived from c4.decode.Rule")
    found: Rule = made
    return found


def _findings(given: Any) -> Iterator[str]:
    rule = _made(given)
    own = vars(type(rule))
    if "__dataclass_fields__" not in own and own.keys() & {"__annotations__", "__init__"}:
        yield "its class is no dataclass of its own; write @dataclass(frozen=True) above it"
    plain_settings(type(rule).__name__, asdict(rule))
    taken = []
    for shape in SHAPES:
        try:
            rule.check(shape, shift=False)
        except C4Error:  # this rule decodes others
            continue
        except RAISED as error:
            yield f"its check fails: {failure(error)}; it refuses by a c4.errors.ConfigError"
            return
        taken.append(shape)
    if not taken:
        yield f"it refuses every shape that it was tried at: {', '.join(map(str, SHAPES))}"
    for shape in taken:
        yield from _decodes(rule, shape)


def _decodes(rule: Rule, shape: Shape) -> Iterator[str]:
    from c4.decode.loop import decode

    watched = GuardedRule(rule)
    first, second = (decode(_Model(shape), PROMPT, shape, rule=watched) for _ in range(2))
    if (first.ids == MASK).any():
        yield f"it leaves positions masked at {shape}"
    if first.steps != second.steps or not np.array_equal(first.ids, second.ids):
        yield (
            "put to work again it decodes otherwise: start() must return a new state each time, "
            "and the rule itself must not change"
        )


class _Model:
    """A model without weights: its logits depend on nothing but what it is shown."""

    mask_id = MASK
    shift = False

    def __init__(self, shape: Shape) -> None:
        self.passes = 0
        self.most = PASSES_PER_POSITION * shape.length

    def logits(
        self,
        ids: IntArray,
        start: int,
        *,
        positions: IntArray | None = None,  # noqa: ARG002 - a model's signature
        attention: BoolArray | None = None,  # noqa: ARG002
    ) -> "Tensor":
        import torch

        self.passes += 1
        if self.passes > self.most:
            raise ConfigError(
                f"it spends {self.most} passes and is not done: what it takes back, it must at "
                "some time leave committed"
            )
        made = torch.Generator().manual_seed(int(ids.sum()) * 1009 + self.passes)
        return torch.randn(len(ids) - start, VOCABULARY, generator=made) * 3

    def read(self, ids: IntArray, start: int) -> "Reading":
        return self.interpret(self.logits(ids, start))

    def interpret(self, logits: "Tensor") -> "Reading":
        from c4.models import read_logits

        return read_logits(logits, self.mask_id)
