"""GSM-Hard: GSM8K with bigger numbers."""

from c4.tasks._careful_numbers import last_written_number, written_number
from c4.tasks._extract import last_number, normal_number
from c4.tasks._reasoning import step_by_step
from c4.tasks._shapes import LONG_REASONING_SHAPE
from c4.tasks.task import Example, Family, HubSplit, Row, SearchMode, Task


def read(row: Row) -> Example | None:
    target = normal_number(f"{float(row['target']):.2f}")
    return Example(step_by_step(row["input"]), target)


TASK = Task(
    name="gsmhard",
    family=Family.LONG_REASONING,
    hub=HubSplit(dataset="reasoning-machines/gsm-hard", split="train"),
    read=read,
    extract=last_written_number,
    plain=last_number,
    normal=written_number,
    search=SearchMode.LAST,
    shape=LONG_REASONING_SHAPE,
    n=100,
    skip=40,
)
