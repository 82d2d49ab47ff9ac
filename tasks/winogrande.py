"""WinoGrande: choose which of two names fills the blank."""

from c4.tasks.prompts import multiple_choice
from c4.tasks.reading.answers import answers
from c4.tasks.task import Example, HubSplit, Row, Task


def read(row: Row) -> Example | None:
    options = [row["option1"], row["option2"]]
    return multiple_choice(row["sentence"], options, int(row["answer"]) - 1)


TASK = Task(
    name="winogrande",
    hub=HubSplit(dataset="allenai/winogrande", config="winogrande_xl", split="validation"),
    read=read,
    **answers("letter"),
    n=200,
    skip=40,
)
