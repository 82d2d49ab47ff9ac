"""The contract of a task."""

from collections.abc import Iterator
from typing import Any

from c4.errors import C4Error, failure
from c4.tasks import (
    TASKS,
    Candidate,
    Example,
    Family,
    ReadingStyle,
    Task,
    find_task,
    grade,
    read_under,
)
from c4.tasks.examples import default_source, load_samples
from c4.tasks.grading import Verdict
from c4.tasks.registry import adopt_task
from c4.testing._contract import BrokenPlugin, require

MOST_EXAMPLES = 5
NOISE = (
    *("", " ", "no answer here", "A", "I think (B) is right.", "12", "x = 3.5, so 1,234 in all"),
    *(r"\boxed{7}", r"\boxed{", "def f(x):\n    return x", "```python\ndef", "漢字 ½ −3", "\n\n\n"),
)
"""Texts that an extractor meets on the way: a model writes anything before it is done."""
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
    misread = [x for style in ReadingStyle for t in texts for x in _reads(task, t, style, choices)]
    if misread:  # nothing can be graded then
        yield from misread
        return
    for sample in first:
        if not sample.example.prompt.strip():
            yield f"the prompt of example {sample.index} is empty"
        yield from _grades(task, sample.example, sample.index)


def _reads(task: Task, text: str, style: ReadingStyle, choices: Any) -> Iterator[str]:
    """Whether an extractor reads a text, and says where."""
    which = "extract" if style is ReadingStyle.CAREFUL else "plain"
    try:
        found, again = (read_under(task, style).extract(text, choices) for _ in range(2))
    except Exception as error:
        yield f"{which} fails on {text!r}: {failure(error)}"
        return
    if found != again:
        yield f"{which} reads {text!r} differently when it is asked again"
    if found is None:
        return
    if not isinstance(found, Candidate):
        yield f"{which} must return a c4.tasks.Candidate or None, not {found!r}"
    elif not isinstance(found.value, str) or not 0 <= found.start <= found.end <= len(text):
        yield f"{which} finds {found!r} in {text!r}, which is no text at a place within it"


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
