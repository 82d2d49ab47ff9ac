"""TruthfulQA, MC1: one true answer among up to thirteen."""

import random

from c4.tasks.prompts import multiple_choice
from c4.tasks.reading.answers import answers
from c4.tasks.task import Example, HubSplit, Row, Task


def read(row: Row) -> Example | None:
    choices = list(row["mc1_targets"]["choices"])
    true = list(row["mc1_targets"]["labels"]).index(1)
    # The data lists the true choice first in every row. The seed is the row itself, so the
    # order of its choices does not depend on the other rows.
    order = list(range(len(choices)))
    random.Random(repr((row["question"], choices))).shuffle(order)
    return multiple_choice(row["question"], [choices[i] for i in order], order.index(true))


TASK = Task(
    name="truthfulqa",
    hub=HubSplit(dataset="truthfulqa/truthful_qa", config="multiple_choice", split="validation"),
    read=read,
    **answers("letter"),
    n=200,
    skip=40,
)
