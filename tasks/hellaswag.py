"""HellaSwag: choose the ending that continues a text."""

from c4.tasks.prompts import multiple_choice
from c4.tasks.reading.answers import answers
from c4.tasks.task import Example, HubSplit, Row, Task


def read(row: Row) -> Example | None:
    return multiple_choice(row["ctx"], row["endings"], int(row["label"]))


TASK = Task(
    name="hellaswag",
    hub=HubSplit(dataset="Rowan/hellaswag", split="validation"),
    read=read,
    **answers("letter"),
    n=200,
    skip=40,
)
