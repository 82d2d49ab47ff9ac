"""Record: decode a task under a method and save each trajectory as it finishes.

`plan_recording` plans a full decode that keeps every step, and `plan_methods` plans runs of any
methods. `start_recording` executes a plan and yields each trajectory once it is saved. Importing
this package does not import torch.
"""

from typing import TYPE_CHECKING, Any

from c4.record.methods import METHODS, Method, ResolvedMethod
from c4.record.plan import Plan, RunConfig, load_planned, plan_methods, plan_recording
from c4.record.settings import MethodChoice, resolve_methods

if TYPE_CHECKING:
    from c4.record.recorder import Recording, start_recording

__all__ = [
    "METHODS",
    "Method",
    "MethodChoice",
    "Plan",
    "Recording",
    "ResolvedMethod",
    "RunConfig",
    "load_planned",
    "plan_methods",
    "plan_recording",
    "resolve_methods",
    "start_recording",
]


def __getattr__(name: str) -> Any:
    if name not in ("Recording", "start_recording"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from c4.record import recorder

    return getattr(recorder, name)
