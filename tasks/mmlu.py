"""MMLU: four choices, 57 subjects."""

from c4.tasks._careful_letters import stated_letter
from c4.tasks._extract import first_letter
from c4.tasks._letters import multiple_choice
from c4.tasks._shapes import LETTERS_SHAPE
from c4.tasks.task import Example, Family, HubSplit, Row, SearchMode, Task


def read(row: Row) -> Example | None:
    return multiple_choice(row["question"], row["choices"], int(row["answer"]))


TASK = Task(
    name="mmlu",
    family=Family.LETTERS,
    hub=HubSplit(dataset="cais/mmlu", config="all", split="test"),
    read=read,
    extract=stated_letter,
    plain=first_letter,
    search=SearchMode.FIRST5,
    shape=LETTERS_SHAPE,
    n=200,
    skip=40,
)
