"""MMLU: four choices, 57 subjects."""

from c4.tasks.prompts import multiple_choice
from c4.tasks.reading.answers import answers
from c4.tasks.task import Example, HubSplit, Row, Task


def read(row: Row) -> Example | None:
    return multiple_choice(row["question"], row["choices"], int(row["answer"]))


TASK = Task(
    name="mmlu",
    hub=HubSplit(dataset="cais/mmlu", config="all", split="test"),
    read=read,
    **answers("letter"),
    n=200,
    skip=40,
)
