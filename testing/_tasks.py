"""The contract of a task."""

from collections.abc import Iterator

from c4.errors import C4Error
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
from c4.tasks.registry import adopt_task
from c4.testing._contract import BrokenPlugin, require
from c4.testing._extractors import NOISE, misreadings

MOST_EXAMPLES = 5
GOLD = ("{}", "The answer is {}", r"The answer is \boxed{{{}}}.", "#### {}", "{}.")
"""Ways of writing a gold answer, one of which every extractor should read."""


def check_task(task: Task | str) -> None:
    """Check a task: a name as commands take it, or an object.

    Its examples must be readable twice alike, its extractors must read any text without failing and
    say where the answer stands, and the gold answer must be graded as right.

    Raises:
        BrokenPlugin: says what is broken.
    """
    name = task if isinstance(task, str) else str(getattr(task, "name", type(task).__name__))
    try:
        found = find_task(task) if isinstance(task, str) else task
    except C4Error as error:
        raise BrokenPlugin(f"{name} breaks the contract of a task:\n- {error}") from error
    if not isinstance(found, Task):
        raise BrokenPlugin(f"{name} breaks the contract of a task:\n- it is no c4.tasks.Task")
    require("task", name, _findings(found))


def _findings(task: Task) -> Iterator[str]:
    if task.name not in TASKS:
        adopt_task(task)
    source = default_source(task, embedded=True)
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
        yield from _grades(task, sample.example, sample.index)


def _grades(task: Task, example: Example, index: int) -> Iterator[str]:
    """Whether the gold answer counts as right, in one of the ways to write it."""
    ways = ["{}"] if task.family is Family.CODE else GOLD
    written = [way.format(example.target) for way in ways]
    verdicts = [grade(task, example, text).verdict for text in written]
    if Verdict.RIGHT not in verdicts and Verdict.NOT_GRADABLE not in verdicts:
        yield (
            f"the gold answer of example {index}, {example.target!r}, is graded {verdicts[0]}; "
            "extract and normal must bring it into the same form"
        )
