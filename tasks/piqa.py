"""PIQA: choose which of two ways reaches a goal."""

from c4.tasks.prompts import multiple_choice
from c4.tasks.reading.answers import answers
from c4.tasks.task import Example, HubSplit, Row, Task


def read(row: Row) -> Example | None:
    return multiple_choice(row["goal"], [row["sol1"], row["sol2"]], int(row["label"]))


TASK = Task(
    name="piqa",
    hub=HubSplit(dataset="baber/piqa", split="validation"),
    read=read,
    **answers("letter"),
    n=200,
    skip=40,
)
