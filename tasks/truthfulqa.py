"""TruthfulQA, MC1: one true answer among up to thirteen."""

import random

from c4.tasks.prompts import multiple_choice
from c4.tasks.reading.answers import answers
from c4.tasks.task import Example, HubSplit, Row, Task


def read(row: Row) -> Example | None:
    choices = list(row["mc1_targets"]["choices"])
    true = list(row["mc1_targets"]["labels"]).index(1)
    # The data has the true choice first in every row. Seeded by the row itself, so that it
    # keeps its order whatever else is loaded.
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
