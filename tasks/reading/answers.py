"""Kinds of answers by name: extractors, normal forms, and where gates look for the answer."""

from typing import Any

from c4.errors import unknown_name
from c4.tasks.reading.formula import last_box, normal_answer
from c4.tasks.reading.letter import stated_letter
from c4.tasks.reading.number import last_written_number, written_number
from c4.tasks.reading.plain import (
    first_function,
    first_letter,
    last_boxed,
    last_number,
    normal_latex,
)
from c4.tasks.reading.program import written_function
from c4.tasks.task import SHAPES, Family, SearchMode

EXTRACTORS: dict[str, dict[str, Any]] = {
    "number": {
        "family": Family.LONG_REASONING,
        "extract": last_written_number,
        "plain": last_number,
        "normal": written_number,
        "search": SearchMode.LAST,
    },
    "boxed": {
        "family": Family.LONG_REASONING,
        "extract": last_box,
        "plain": last_boxed,
        "normal": normal_answer,
        "plain_normal": normal_latex,
        "search": SearchMode.LAST,
    },
    "letter": {
        "family": Family.LETTERS,
        "extract": stated_letter,
        "plain": first_letter,
        "search": SearchMode.FIRST5,
    },
    "function": {
        "family": Family.CODE,
        "extract": written_function,
        "plain": first_function,
        "search": SearchMode.CODE,
    },
}
"""The fields of a `Task` by the kind of its answers: a number, a box, a letter or a program."""


def answers(kind: str) -> dict[str, Any]:
    """The fields of a `Task` whose answers are of a kind: `Task(name=…, **answers("number"))`."""
    if kind not in EXTRACTORS:
        raise unknown_name("extractor", kind, EXTRACTORS)
    fields = EXTRACTORS[kind]
    return {"shape": SHAPES[fields["family"]], **fields}
