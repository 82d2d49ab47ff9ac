"""ASDiv: varied wording, one step. Rows whose answer is not exactly one number are left out."""

from c4.tasks._careful_numbers import last_written_number, written_number
from c4.tasks._extract import last_number, normal_number, numbers_in
from c4.tasks._reasoning import step_by_step
from c4.tasks._shapes import LONG_REASONING_SHAPE
from c4.tasks.task import Example, Family, HubSplit, Row, SearchMode, Task


def read(row: Row) -> Example | None:
    numbers = list(numbers_in(row["answer"]))
    if len(numbers) != 1:
        return None
    prompt = step_by_step(f"{row['body'].strip()} {row['question'].strip()}")
    return Example(prompt, normal_number(numbers[0]))


TASK = Task(
    name="asdiv",
    family=Family.LONG_REASONING,
    hub=HubSplit(dataset="EleutherAI/asdiv", split="validation"),
    read=read,
    extract=last_written_number,
    plain=last_number,
    normal=written_number,
    search=SearchMode.LAST,
    shape=LONG_REASONING_SHAPE,
    n=100,
    skip=40,
)
