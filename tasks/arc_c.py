"""ARC-Challenge: science questions. Rows whose choices are not labelled A to D are left out."""

from c4.tasks.prompts import multiple_choice
from c4.tasks.reading.answers import answers
from c4.tasks.task import Example, HubSplit, Row, Task


def read(row: Row) -> Example | None:
    labels = list(row["choices"]["label"])
    if labels != list("ABCD"):
        return None
    return multiple_choice(row["question"], row["choices"]["text"], labels.index(row["answerKey"]))


TASK = Task(
    name="arc_c",
    hub=HubSplit(dataset="allenai/ai2_arc", config="ARC-Challenge", split="test"),
    read=read,
    **answers("letter"),
    n=200,
    skip=40,
)
