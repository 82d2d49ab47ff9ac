"""ASDiv: varied wording, one step. Rows whose answer is not exactly one number are left out."""

from c4.tasks.prompts import step_by_step
from c4.tasks.reading.answers import answers
from c4.tasks.reading.plain import normal_number, numbers_in
from c4.tasks.task import Example, HubSplit, Row, Task


def read(row: Row) -> Example | None:
    numbers = list(numbers_in(row["answer"]))
    if len(numbers) != 1:
        return None
    prompt = step_by_step(f"{row['body'].strip()} {row['question'].strip()}")
    return Example(prompt, normal_number(numbers[0]))


TASK = Task(
    name="asdiv",
    hub=HubSplit(dataset="EleutherAI/asdiv", split="validation"),
    read=read,
    **answers("number"),
    n=100,
    skip=40,
)
