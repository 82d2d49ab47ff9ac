"""WinoGrande: which of two names fills the blank."""

from c4.tasks._careful_letters import stated_letter
from c4.tasks._extract import first_letter
from c4.tasks._letters import multiple_choice
from c4.tasks._shapes import LETTERS_SHAPE
from c4.tasks.task import Example, Family, HubSplit, Row, SearchMode, Task


def read(row: Row) -> Example | None:
    options = [row["option1"], row["option2"]]
    return multiple_choice(row["sentence"], options, int(row["answer"]) - 1)


TASK = Task(
    name="winogrande",
    family=Family.LETTERS,
    hub=HubSplit(dataset="allenai/winogrande", config="winogrande_xl", split="validation"),
    read=read,
    extract=stated_letter,
    plain=first_letter,
    search=SearchMode.FIRST5,
    shape=LETTERS_SHAPE,
    n=200,
    skip=40,
)
