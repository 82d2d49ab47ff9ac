"""SVAMP: short problems with a number that does not matter."""

from c4.tasks._careful_numbers import last_written_number, written_number
from c4.tasks._extract import last_number, normal_number
from c4.tasks._reasoning import step_by_step
from c4.tasks._shapes import LONG_REASONING_SHAPE
from c4.tasks.task import Example, Family, HubSplit, Row, SearchMode, Task


def read(row: Row) -> Example | None:
    prompt = step_by_step(f"{row['Body'].strip()} {row['Question'].strip()}")
    return Example(prompt, normal_number(str(row["Answer"])))  # text or number, by version


TASK = Task(
    name="svamp",
    family=Family.LONG_REASONING,
    hub=HubSplit(dataset="ChilleD/SVAMP", split="test"),
    read=read,
    extract=last_written_number,
    plain=last_number,
    normal=written_number,
    search=SearchMode.LAST,
    shape=LONG_REASONING_SHAPE,
    n=100,
    skip=40,
)
