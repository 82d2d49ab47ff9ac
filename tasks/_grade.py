"""Grading: is the answer in this text right?"""

from dataclasses import dataclass
from enum import StrEnum

from c4.errors import ConfigError
from c4.tasks._careful_programs import written_program
from c4.tasks._math_verify import is_equivalent, libraries
from c4.tasks._plain_programs import program_in
from c4.tasks._sandbox import Verdict, require_isolation, run_program
from c4.tasks._task import AnswerReading, Example, Family, ReadingStyle, Task


@dataclass(frozen=True)
class Grade:
    """What was answered, and whether it is right."""

    answer: str | None
    """In normal form; None where the text holds none."""
    correct: bool


class Grader(StrEnum):
    """Who compares an answer with the gold one."""

    EXACT = "exact"  # equal normal forms
    MATH_VERIFY = "math-verify"  # equal to a computer algebra system, where the forms differ


def check_can_grade(
    task: Task, *, unsafe_code: bool = False, grader: Grader = Grader.EXACT
) -> None:
    """Refuse now, rather than after the decode, if this machine cannot grade the task."""
    if grader is Grader.MATH_VERIFY:
        if task.family is not Family.LONG_REASONING:
            raise ConfigError(
                f"math-verify compares numbers and formulas, which {task.name} does not answer "
                "with; leave --grader out"
            )
        libraries()
    runs_code = task.family is Family.CODE or grader is Grader.MATH_VERIFY
    if runs_code and not unsafe_code:
        require_isolation()


def grade(
    task: Task,
    example: Example,
    text: str,
    *,
    style: ReadingStyle = AnswerReading.style,
    grader: Grader = Grader.EXACT,
    unsafe_code: bool = False,
) -> Grade:
    """Exact match after the task's normalisation; for code, its tests, run in the sandbox.

    Args:
        grader: Asked where the normal forms differ; it runs in the sandbox, as it evaluates
            what the model wrote.
    """
    found = task.extractor(style)(text, example.choices)
    if found is None:
        return Grade(None, correct=False)
    if task.family is not Family.CODE:
        correct = found.value == task.gold(example, style)
        if not correct and grader is Grader.MATH_VERIFY:
            correct = is_equivalent(example.target, text, unsafe=unsafe_code)
        return Grade(found.value, correct=correct)
    program = answer_program(task, example, text, style)
    outcome = run_program(example.preamble, program or "", example.tests, unsafe=unsafe_code)
    return Grade(found.value, correct=outcome.verdict is Verdict.PASSED)


def answer_program(task: Task, example: Example, text: str, style: ReadingStyle) -> str | None:
    """The program that an answer's grade depends on; None where no function is found in it."""
    if task.extractor(style)(text, example.choices) is None:
        return None
    return program_in(text) if style is ReadingStyle.PLAIN else written_program(text, example)
