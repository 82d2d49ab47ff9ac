r"""MATH-500: competition problems answered in `\boxed{}`."""

from c4.tasks.prompts import step_by_step
from c4.tasks.reading.answers import answers
from c4.tasks.task import Example, HubSplit, Row, Task

FORMAT = r"Put the final answer in \boxed{}."


def read(row: Row) -> Example | None:
    prompt = step_by_step(f"{row['problem'].strip()}\n{FORMAT}")
    return Example(prompt, row["answer"].strip())


TASK = Task(
    name="math",
    hub=HubSplit(dataset="HuggingFaceH4/MATH-500", split="test"),
    read=read,
    **answers("boxed"),
    n=100,
    skip=40,
)
