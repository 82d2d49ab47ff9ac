"""MBPP, sanitized: write the described function, graded by running its assertions."""

from c4.tasks.reading.answers import answers
from c4.tasks.task import Example, HubSplit, Row, Task

INSTRUCTION = "Answer with a Python function and nothing else."


def read(row: Row) -> Example | None:
    tests = list(row["test_list"])
    return Example(
        prompt=f"{row['prompt'].strip()} {INSTRUCTION}\nIt must pass: {tests[0]}",
        target=row["code"],
        tests="\n".join([*row["test_imports"], *tests]) + "\n",
    )


TASK = Task(
    name="mbpp",
    hub=HubSplit(dataset="google-research-datasets/mbpp", config="sanitized", split="test"),
    read=read,
    **answers("function"),
    n=257,
    skip=0,
)
