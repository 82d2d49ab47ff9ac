"""A task of a user's own, as code and as rows, and a shape in which it is decoded quickly."""

import json

TASKS = """
from c4.tasks import Example, Task, answers
ROWS = [{"q": f"What is {i} + {i}?", "a": str(2 * i)} for i in range(1, 7)]
TASK = Task(name="sums", read=lambda row: Example(row["q"], row["a"]), rows=ROWS,
            **answers("number"))
"""
ROWS = "\n".join(json.dumps({"q": f"{i}+{i}?", "a": 2 * i}) for i in range(1, 7))
SMALL = ["--gen-length", "16", "--steps", "16", "--block-length", "8"]
