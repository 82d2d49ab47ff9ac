"""HumanEval: write the whole function, graded by running its tests."""

from c4.tasks.reading.answers import answers
from c4.tasks.task import Example, HubSplit, Row, Task

INSTRUCTION = "Complete this Python function. Answer with the whole function and nothing else."


def read(row: Row) -> Example | None:
    prompt, name = row["prompt"], row["entry_point"]
    # The prompt gives imports and helpers before the function; an answer need not repeat them.
    preamble = prompt[: prompt.rfind(f"def {name}")]
    return Example(
        prompt=f"{INSTRUCTION}\n{prompt.strip()}",
        target=prompt + row["canonical_solution"],
        preamble=preamble,
        tests=f"{row['test']}\ncheck({name})\n",
    )


TASK = Task(
    name="humaneval",
    hub=HubSplit(dataset="openai/openai_humaneval", split="test"),
    read=read,
    **answers("function"),
    n=164,
    skip=0,
)
