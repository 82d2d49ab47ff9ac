"""Grading: is the answer in this text right?"""

import ast
import re
import textwrap
from dataclasses import dataclass

from c4.tasks._sandbox import Verdict, require_isolation, run_program
from c4.tasks._task import AnswerReading, Example, Family, ReadingStyle, Task


@dataclass(frozen=True)
class Grade:
    """What was answered, and whether it is right."""

    answer: str | None
    """In normal form; None where the text holds none."""
    correct: bool


def check_can_grade(task: Task, *, unsafe_code: bool = False) -> None:
    """Refuse now, rather than after the decode, if this machine cannot grade the task."""
    if task.family is Family.CODE and not unsafe_code:
        require_isolation()


def grade(
    task: Task,
    example: Example,
    text: str,
    *,
    style: ReadingStyle = AnswerReading.style,
    unsafe_code: bool = False,
) -> Grade:
    """Exact match after the task's normalisation; for code, its tests, run in the sandbox."""
    found = task.extractor(style)(text, example.choices)
    if found is None:
        return Grade(None, correct=False)
    if task.family is not Family.CODE:
        return Grade(found.value, correct=found.value == example.target)
    outcome = run_program(example.preamble, program_in(text), example.tests, unsafe=unsafe_code)
    return Grade(found.value, correct=outcome.verdict is Verdict.PASSED)


FENCED = re.compile(r"^```[^\n]*\n(.*?)(?:^```|\Z)", re.DOTALL | re.MULTILINE)
STATEMENT = re.compile(r"\s*(?:def|async def|class|import|from)\b|\s*@")


def program_in(text: str) -> str:
    """The program in an answer: the first fenced block, or what is Python; prose is cut.

    Longer than what an exit gate watches: a program may bring helpers and constants.
    """
    fenced = FENCED.search(text)
    lines = (fenced[1] if fenced else text).splitlines()
    first = next((i for i, line in enumerate(lines) if STATEMENT.match(line)), len(lines))
    # From the start, if it is code from the start; else from the first line that must be code.
    programs = (longest_program(lines[start:]) for start in (0, first))
    return next(filter(_defines_something, programs), "")


def _defines_something(program: str) -> bool:
    """Whether it is a program rather than a word that happens to be Python."""
    body = ast.parse(program).body
    prose = body and isinstance(body[0], ast.Expr) and not isinstance(body[0].value, ast.Constant)
    definitions = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    return not prose and any(isinstance(statement, definitions) for statement in body)


def longest_program(lines: list[str]) -> str:
    """As many lines as are Python together, common indentation removed."""
    for count in range(len(lines), 0, -1):
        program = textwrap.dedent("\n".join(lines[:count]))
        try:
            ast.parse(program)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            continue
        return program
    return ""
