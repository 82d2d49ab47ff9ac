"""MBPP, sanitized: write the described function, graded by running its assertions."""

from c4.tasks._careful_programs import written_function
from c4.tasks._extract import first_function
from c4.tasks._shapes import CODE_SHAPE
from c4.tasks.task import Example, Family, HubSplit, Row, SearchMode, Task

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
    family=Family.CODE,
    hub=HubSplit(dataset="google-research-datasets/mbpp", config="sanitized", split="test"),
    read=read,
    extract=written_function,
    plain=first_function,
    search=SearchMode.CODE,
    shape=CODE_SHAPE,
    n=257,
    skip=0,
)
