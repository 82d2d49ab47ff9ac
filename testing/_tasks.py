"""The contract of a task."""

from collections.abc import Iterator
from typing import Any

from c4.tasks import (
    TASKS,
    Example,
    Family,
    Task,
    find_task,
    grade,
)
from c4.tasks.examples import default_source, load_samples
from c4.tasks.grading import Verdict
from c4.tasks.registry import check_name
from c4.testing._contract import require
from c4.testing._extractors import NOISE, misreadings

MOST_EXAMPLES = 5
GOLD = (
    *("{}", "The answer is {}", r"The answer is \boxed{{}}.", "#### {}", "{}.", "Answer: {}"),
    *("The total is {}", "<answer>{}</answer>", "**{}**", "[{}]"),
)
"""Ways of writing a gold answer, one of which every extractor should read."""


def check_task(task: Task | str, *, written: str | None = None) -> None:
    """Check a task: a name as commands take it, or an object.

    Its examples must be readable twice alike, its extractors must read any text without failing and
    say where the answer stands, and the gold answer must be graded as right.

    Args:
        written: how a model writes an answer that the task's extractor finds, such as
            `"<<{}>>"`; the usual ways are tried by themselves.

    Raises:
        BrokenPlugin: says what is broken.
    """
    name = task if isinstance(task, str) else str(getattr(task, "name", type(task).__name__))
    require("task", name, _findings(task, written))


def _findings(given: Any, written: str | None) -> Iterator[str]:
    task = find_task(given) if isinstance(given, str) else given
    if not isinstance(task, Task):
        yield "it is no c4.tasks.Task"
        return
    is_own = TASKS.get(task.name) is task
    if not is_own:
        check_name(task)
    source = default_source(task, embedded=is_own)
    some = min(MOST_EXAMPLES, load_samples(task, source, n=1).usable)
    first, second = (load_samples(task, source, skip=0, n=some).samples for _ in range(2))
    if first != second:
        yield "its rows or examples are not the same when they are read again"
    texts = (*NOISE, *(sample.example.target for sample in first))
    choices = first[0].example.choices
    extractors = {"extract": task.extract, "plain": task.plain}
    misread = [x for pair in extractors.items() for x in misreadings(*pair, texts, choices)]
    if misread:  # nothing can be graded then
        yield from misread
        return
    for sample in first:
        if not sample.example.prompt.strip():
            yield f"the prompt of example {sample.index} is empty"
        misgraded = _misgraded(task, sample.example, sample.index, written)
        if misgraded:  # the others would say the same of other answers
            yield misgraded
            return


def _misgraded(task: Task, example: Example, index: int, written: str | None) -> str | None:
    """What is wrong if the gold answer is right in none of the ways to write it."""
    is_code = task.family is Family.CODE
    ways = [*(["{}"] if is_code else GOLD), *([written] if written else [])]
    texts = [way.replace("{}", example.target) for way in ways]
    verdicts = []
    for text in [*texts, *(() if is_code else map(str.upper, texts))]:
        verdicts.append(grade(task, example, text).verdict)
        if verdicts[-1] in (Verdict.RIGHT, Verdict.NOT_GRADABLE):
            return None
    told = f"the gold answer of example {index}, {example.target!r}, is graded "
    if set(verdicts) == {Verdict.NO_ANSWER}:
        how = "say how a model writes an answer: check_task(…, written='<<{}>>')"
        return f"{told}no answer; extract finds it in none of the usual texts; {how}"
    return f"{told}{verdicts[0]}; extract and normal must bring it into the same form"
