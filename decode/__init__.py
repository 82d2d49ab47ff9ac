"""Decode: one forward pass per step, a rule that commits, and a gate that may end the decode.

The loop `decode` is in `c4.decode.loop`, which imports torch. The commit rules are in
`c4.decode.rules`, one file each, and do not import it.
"""

from typing import TYPE_CHECKING, Any

from c4.decode.commits import (
    Block,
    Choice,
    Predictor,
    Rule,
    RuleState,
    accept,
    most_confident,
)
from c4.decode.forward import Cache, Forward
from c4.plugins.parameters import parameter

if TYPE_CHECKING:
    from c4.decode.loop import Decoded, decode

__all__ = [
    "Block",
    "Cache",
    "Choice",
    "Decoded",
    "Forward",
    "Predictor",
    "Rule",
    "RuleState",
    "accept",
    "decode",
    "most_confident",
    "parameter",
]


def __getattr__(name: str) -> Any:
    if name not in ("Decoded", "decode"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from c4.decode import loop

    return getattr(loop, name)
