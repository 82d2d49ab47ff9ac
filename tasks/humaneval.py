"""HumanEval: write the whole function, graded by running its tests."""

from c4.tasks._careful_programs import written_function
from c4.tasks._extract import first_function
from c4.tasks._shapes import CODE_SHAPE
from c4.tasks.task import Example, Family, HubSplit, Row, SearchMode, Task

INSTRUCTION = "Complete this Python function. Answer with the whole function and nothing else."


def read(row: Row) -> Example | None:
    prompt, name = row["prompt"], row["entry_point"]
    # Imports and helpers that the prompt defines before the function are given, not asked for.
    preamble = prompt[: prompt.rfind(f"def {name}")]
    return Example(
        prompt=f"{INSTRUCTION}\n{prompt.strip()}",
        target=prompt + row["canonical_solution"],
        preamble=preamble,
        tests=f"{row['test']}\ncheck({name})\n",
    )


TASK = Task(
    name="humaneval",
    family=Family.CODE,
    hub=HubSplit(dataset="openai/openai_humaneval", split="test"),
    read=read,
    extract=written_function,
    plain=first_function,
    search=SearchMode.CODE,
    shape=CODE_SHAPE,
    n=164,
    skip=0,
)
