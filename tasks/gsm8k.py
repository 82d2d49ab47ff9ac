"""GSM8K: grade-school word problems in a few steps."""

from c4.tasks._careful_numbers import last_written_number, written_number
from c4.tasks._extract import last_number, normal_number
from c4.tasks._reasoning import step_by_step
from c4.tasks._shapes import LONG_REASONING_SHAPE
from c4.tasks.task import Example, Family, HubSplit, Row, SearchMode, Task


def read(row: Row) -> Example | None:
    target = row["answer"].rpartition("####")[2]
    return Example(step_by_step(row["question"]), normal_number(target.strip()))


TASK = Task(
    name="gsm8k",
    family=Family.LONG_REASONING,
    hub=HubSplit(dataset="openai/gsm8k", config="main", split="test"),
    read=read,
    extract=last_written_number,
    plain=last_number,
    normal=written_number,
    search=SearchMode.LAST,
    shape=LONG_REASONING_SHAPE,
    n=100,
    skip=40,
)
