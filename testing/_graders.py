"""The contract of a grader."""

from collections.abc import Iterator
from typing import Any

from c4.errors import RAISED, failure
from c4.tasks import Example
from c4.tasks.graders import REGISTRY, find_grader
from c4.tasks.task import Grader, Judge
from c4.testing._contract import require

CASES = (
    (Example("What is 6 + 6?", "12"), ("12", "-3", "x", ""), "The answer is {}."),
    (Example("Which?", "B", choices=("no", "yes")), ("B", "A", ""), "{}"),
    (Example("Solve.", r"\frac{1}{2}"), (r"\frac{1}{2}", "0.5", r"\frac{"), r"\boxed{{{}}}"),
)
"""Examples, answers to each, and a text around the answer."""


def check_grader(grader: Judge | str) -> None:
    """Check a grader: a name as commands take it, or a function.

    It must say true or false to any answer without failing, and say the same when asked again.

    Raises:
        BrokenPlugin: says what is broken.
    """
    name = grader if isinstance(grader, str) else getattr(grader, "__name__", repr(grader))
    require("grader", name, _findings(grader))


def _findings(grader: Any) -> Iterator[str]:
    if not isinstance(grader, str):
        yield from _judgements(grader)
    elif (label := find_grader(grader)) not in list(Grader):  # c4's own are no functions
        yield from _judgements(REGISTRY.behind(label))


def _judgements(judge: Any) -> Iterator[str]:
    if not callable(judge):
        yield "it must be a function (example, answer, text)"
        return
    for example, answers, text in CASES:
        for answer in answers:
            asked = f"the answer {answer!r} to {example.target!r}"
            try:
                first, again = (judge(example, answer, text.format(answer)) for _ in range(2))
            except RAISED as error:
                yield f"it fails on {asked}: {failure(error)}"
                continue
            if first not in (True, False):
                yield f"it must return True or False, not {first!r}"
            if first is not again and first != again:
                yield f"it grades {asked} differently when it is asked again"
