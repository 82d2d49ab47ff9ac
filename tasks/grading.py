"""Grading: decide whether the answer in a text is right."""

import logging
from dataclasses import dataclass
from enum import StrEnum

from c4.errors import ConfigError
from c4.tasks.graders import guard_judge, own_judge
from c4.tasks.reading.answers import EXTRACTORS
from c4.tasks.reading.extractors import read_under
from c4.tasks.reading.plain import program_in
from c4.tasks.reading.program import written_program
from c4.tasks.sandbox.math_verify import compare_formulas, libraries
from c4.tasks.sandbox.run import Outcome, RunEnd, require_isolation, run_program
from c4.tasks.task import AnswerReading, Candidate, Example, Family, Grader, ReadingStyle, Task

log = logging.getLogger(__name__)


class Verdict(StrEnum):
    """The result of grading an answer."""

    RIGHT = "right"
    WRONG = "wrong"
    NO_ANSWER = "no answer"  # the text holds none
    TIMED_OUT = "timed out"  # the program took too long
    CRASHED = "crashed"  # the program raised, exited or reached a limit of the sandbox
    NOT_GRADABLE = "not gradable"  # the machine failed, not the program

    @property
    def correct(self) -> bool | None:
        """Whether the answer is right; None if it could not be graded."""
        return None if self is Verdict.NOT_GRADABLE else self is Verdict.RIGHT


PROGRAM_VERDICTS = {
    RunEnd.PASSED: Verdict.RIGHT,
    RunEnd.FAILED: Verdict.WRONG,
    RunEnd.TIMEOUT: Verdict.TIMED_OUT,
    RunEnd.LIMIT: Verdict.CRASHED,
    RunEnd.CRASHED: Verdict.CRASHED,
    RunEnd.MACHINE: Verdict.NOT_GRADABLE,
}
"""Verdict on a program, by how its run ended."""


@dataclass(frozen=True)
class Grade:
    """The answer found in a text, and the verdict on it."""

    answer: str | None
    """The answer in normal form; None if the text holds none."""
    verdict: Verdict

    @property
    def correct(self) -> bool | None:
        """Whether the answer is right; None if it could not be graded."""
        return self.verdict.correct


def check_can_grade(
    task: Task, reading: AnswerReading | None = None, *, unsafe_code: bool = False
) -> None:
    """Raise before the decode if this machine cannot grade the task."""
    algebra = reading is not None and reading.grader is Grader.MATH_VERIFY
    if algebra:
        if task.family is not Family.LONG_REASONING:
            raise ConfigError(
                f"math-verify compares numbers and formulas, which {task.name} does not answer "
                "with; leave --grader out"
            )
        libraries()
    runs_code = task.family is Family.CODE or algebra
    if runs_code and not unsafe_code:
        require_isolation()


def grade(
    task: Task,
    example: Example,
    text: str,
    reading: AnswerReading | None = None,
    *,
    unsafe_code: bool = False,
) -> Grade:
    """Grade by exact match of normal forms; for code, by running the tests in the sandbox.

    A user's grader or the task's judge replaces both. math-verify compares answers whose normal
    forms differ; it evaluates what the model wrote, so it runs in the sandbox too.

    Args:
        text: the generated text under the reading's ending.
    """
    reading = reading or AnswerReading()
    read = read_under(task, reading.style)
    found = read.extract(text, example.choices)
    if found is None:
        return Grade(None, Verdict.NO_ANSWER)
    judge = own_judge(reading.grader)
    if judge is None and task.judge is not None:
        judge = guard_judge(f"the judge of {task.name}", task.judge)
    if judge is not None:
        right = judge(example, found.value, text)
        return Grade(found.value, Verdict.RIGHT if right else Verdict.WRONG)
    if task.family is not Family.CODE:
        if found.value == read.gold(example):
            return Grade(found.value, Verdict.RIGHT)
        if reading.grader is not Grader.MATH_VERIFY:
            return Grade(found.value, Verdict.WRONG)
        outcome = compare_formulas(example.target, text, unsafe=unsafe_code)
        return Grade(found.value, _verdict(outcome))
    outcome = run_program(
        example.preamble,
        _program(example, text, found, reading.style),
        example.tests,
        reference=example.target,
        unsafe=unsafe_code,
    )
    return Grade(found.value, _verdict(outcome))


def _verdict(outcome: Outcome) -> Verdict:
    verdict = PROGRAM_VERDICTS[outcome.verdict]
    if verdict is Verdict.NOT_GRADABLE:
        log.warning("an answer could not be graded: %s; c4 grade tries it again", outcome.detail)
    return verdict


def answer_program(task: Task, example: Example, text: str, style: str) -> str | None:
    """Return the program that an answer's grade depends on; None if the text has no function."""
    found = read_under(task, style).extract(text, example.choices)
    return None if found is None else _program(example, text, found, style)


def _program(example: Example, text: str, found: Candidate, style: str) -> str:
    """Return the program to run for an answer; a user's own extractor finds all of it."""
    if style is ReadingStyle.PLAIN:
        return program_in(text)
    if style is ReadingStyle.CAREFUL or style in EXTRACTORS:
        return written_program(text, example)
    return found.value
