"""ARC-Challenge: science questions. Rows labelled with digits, or not with A to D, are left out."""

from c4.tasks._careful_letters import stated_letter
from c4.tasks._extract import first_letter
from c4.tasks._letters import multiple_choice
from c4.tasks._shapes import LETTERS_SHAPE
from c4.tasks.task import Example, Family, HubSplit, Row, SearchMode, Task


def read(row: Row) -> Example | None:
    labels = list(row["choices"]["label"])
    if labels != list("ABCD"):
        return None
    return multiple_choice(row["question"], row["choices"]["text"], labels.index(row["answerKey"]))


TASK = Task(
    name="arc_c",
    family=Family.LETTERS,
    hub=HubSplit(dataset="allenai/ai2_arc", config="ARC-Challenge", split="test"),
    read=read,
    extract=stated_letter,
    plain=first_letter,
    search=SearchMode.FIRST5,
    shape=LETTERS_SHAPE,
    n=200,
    skip=40,
)
