"""GSM-Hard: GSM8K with bigger numbers."""

from c4.tasks.prompts import step_by_step
from c4.tasks.reading.answers import answers
from c4.tasks.reading.plain import normal_number
from c4.tasks.task import Example, HubSplit, Row, Task


def read(row: Row) -> Example | None:
    target = normal_number(f"{float(row['target']):.2f}")
    return Example(step_by_step(row["input"]), target)


TASK = Task(
    name="gsmhard",
    hub=HubSplit(dataset="reasoning-machines/gsm-hard", split="train"),
    read=read,
    **answers("number"),
    n=100,
    skip=40,
)
