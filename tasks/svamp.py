"""SVAMP: short problems that contain an irrelevant number."""

from c4.tasks.prompts import step_by_step
from c4.tasks.reading.answers import answers
from c4.tasks.reading.plain import normal_number
from c4.tasks.task import Example, HubSplit, Row, Task


def read(row: Row) -> Example | None:
    prompt = step_by_step(f"{row['Body'].strip()} {row['Question'].strip()}")
    return Example(prompt, normal_number(str(row["Answer"])))  # a text in some versions


TASK = Task(
    name="svamp",
    hub=HubSplit(dataset="ChilleD/SVAMP", split="test"),
    read=read,
    **answers("number"),
    n=100,
    skip=40,
)
