"""Kinds of answers by name: how each is found, brought into normal form, and where gates look."""

from dataclasses import dataclass, fields
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
from c4.tasks.task import (
    CODE_SHAPE,
    LETTERS_SHAPE,
    LONG_REASONING_SHAPE,
    Extractor,
    Family,
    Normal,
    SearchMode,
    Shape,
)


@dataclass(frozen=True, kw_only=True)
class AnswerKind:
    """What tasks with one kind of answer share; the fields are those of `Task`."""

    family: Family
    extract: Extractor
    plain: Extractor
    search: SearchMode
    shape: Shape
    normal: Normal = str
    plain_normal: Normal = str


EXTRACTORS = {
    "number": AnswerKind(
        family=Family.LONG_REASONING,
        extract=last_written_number,
        plain=last_number,
        normal=written_number,
        search=SearchMode.LAST,
        shape=LONG_REASONING_SHAPE,
    ),
    "boxed": AnswerKind(
        family=Family.LONG_REASONING,
        extract=last_box,
        plain=last_boxed,
        normal=normal_answer,
        plain_normal=normal_latex,
        search=SearchMode.LAST,
        shape=LONG_REASONING_SHAPE,
    ),
    "letter": AnswerKind(
        family=Family.LETTERS,
        extract=stated_letter,
        plain=first_letter,
        search=SearchMode.FIRST5,
        shape=LETTERS_SHAPE,
    ),
    "function": AnswerKind(
        family=Family.CODE,
        extract=written_function,
        plain=first_function,
        search=SearchMode.CODE,
        shape=CODE_SHAPE,
    ),
}
"""The last number, the last box, a letter or a program, as the benchmarks read them."""


def answers(kind: str) -> dict[str, Any]:
    """The fields of a `Task` whose answers are of a kind: `Task(name=…, **answers("number"))`."""
    if kind not in EXTRACTORS:
        raise unknown_name("extractor", kind, EXTRACTORS)
    shared = EXTRACTORS[kind]
    return {spec.name: getattr(shared, spec.name) for spec in fields(shared)}
