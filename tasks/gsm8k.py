"""GSM8K: grade-school word problems in a few steps."""

from c4.tasks.prompts import step_by_step
from c4.tasks.reading.answers import answers
from c4.tasks.reading.plain import normal_number
from c4.tasks.task import Example, HubSplit, Row, Task


def read(row: Row) -> Example | None:
    target = row["answer"].rpartition("####")[2]
    return Example(step_by_step(row["question"]), normal_number(target.strip()))


TASK = Task(
    name="gsm8k",
    hub=HubSplit(dataset="openai/gsm8k", config="main", split="test"),
    read=read,
    **answers("number"),
    n=100,
    skip=40,
)
