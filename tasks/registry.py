"""All tasks by name."""

from c4.errors import unknown_name
from c4.tasks import (
    arc_c,
    asdiv,
    gsm8k,
    gsmhard,
    hellaswag,
    humaneval,
    math,
    mbpp,
    mmlu,
    piqa,
    svamp,
    truthfulqa,
    winogrande,
)
from c4.tasks.task import Task

LETTERS = (mmlu, arc_c, hellaswag, winogrande, piqa, truthfulqa)
LONG_REASONING = (gsm8k, math, svamp, asdiv, gsmhard)
CODE = (humaneval, mbpp)

TASKS: dict[str, Task] = {
    module.TASK.name: module.TASK for module in (*LETTERS, *LONG_REASONING, *CODE)
}
"""Every task by its name."""


def get_task(name: str) -> Task:
    """The task of this name; an unknown name is an error that lists the nearest ones."""
    if name not in TASKS:
        raise unknown_name("task", name, TASKS)
    return TASKS[name]
