"""lm-evaluation-harness, both ways. Imported as `c4.lm_eval`; needs the extra `c4-dlm[lm-eval]`.

`find_lm_eval_task` makes a task of c4 out of one of the harness's, for `--task lm-eval:NAME`;
`C4LM` is a model for `simple_evaluate` that decodes under any method. Importing loads neither the
harness nor torch; using a name loads what it needs.
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
    """Say what to install where the harness is missing."""
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
