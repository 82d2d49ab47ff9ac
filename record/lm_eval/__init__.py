"""Integration with lm-evaluation-harness, as `c4.lm_eval`; needs the extra `c4-dlm[lm-eval]`.

`find_lm_eval_task` converts a harness task into a c4 task, for `--task lm-eval:NAME`. `C4LM` is a
model for `simple_evaluate` that decodes under any method. Importing this package imports neither
the harness nor torch; they are imported on the first use of a name.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from c4.lm_eval._load import ListedTask, list_tasks
    from c4.lm_eval._model import C4LM
    from c4.lm_eval._tasks import find_lm_eval_task

C4LM_HOME = "c4.lm_eval._model"
HOMES = {
    "C4LM": C4LM_HOME,
    "ListedTask": "c4.lm_eval._load",
    "find_lm_eval_task": "c4.lm_eval._tasks",
    "list_tasks": "c4.lm_eval._load",
}

__all__ = ["C4LM", "ListedTask", "find_lm_eval_task", "list_tasks"]


@contextmanager
def needs_harness() -> Iterator[None]:
    """Add the install command to the error if the harness is missing."""
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "lm_eval":
            raise
        needed = "lm-evaluation-harness is needed for this: pip install 'c4-dlm[lm-eval]'"
        raise ModuleNotFoundError(needed, name="lm_eval") from error


def __getattr__(name: str) -> Any:
    if name not in HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    with needs_harness():
        return getattr(import_module(HOMES[name]), name)
