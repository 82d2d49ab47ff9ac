r"""MATH-500: competition problems answered in `\boxed{}`."""

from c4.tasks._careful_latex import last_box, normal_answer
from c4.tasks._extract import last_boxed, normal_latex
from c4.tasks._reasoning import step_by_step
from c4.tasks._shapes import LONG_REASONING_SHAPE
from c4.tasks.task import Example, Family, HubSplit, Row, SearchMode, Task

FORMAT = r"Put the final answer in \boxed{}."


def read(row: Row) -> Example | None:
    prompt = step_by_step(f"{row['problem'].strip()}\n{FORMAT}")
    return Example(prompt, row["answer"].strip())


TASK = Task(
    name="math",
    family=Family.LONG_REASONING,
    hub=HubSplit(dataset="HuggingFaceH4/MATH-500", split="test"),
    read=read,
    extract=last_box,
    plain=last_boxed,
    normal=normal_answer,
    plain_normal=normal_latex,
    search=SearchMode.LAST,
    shape=LONG_REASONING_SHAPE,
    n=100,
    skip=40,
)
