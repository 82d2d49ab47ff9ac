"""Lessons: generated problems as text, with the response that the model is taught to write."""

from dataclasses import dataclass

from c4.tasks import TASKS, Example, Shape
from c4.tasks.problems import problem
from training.settings import LETTER_TASKS, SHAPES, VALIDATION_FIRST


@dataclass(frozen=True)
class Lesson:
    """A problem as text: what is asked, what should be written, and how it is graded."""

    task: str
    example: Example
    response: str


def lesson(task: str, index: int) -> Lesson:
    """The problem of this number with the response a model is taught."""
    made = problem(task, index)
    example = TASKS[task].read(made.row)
    if example is None:
        raise ValueError(f"{task} {index}: the task does not read its own problem")
    response = made.solution
    if task in LETTER_TASKS:
        response = f"{example.target}. {response}"
    return Lesson(task, example, response)


def shape_of(task: str) -> Shape:
    """The embedded model's shape for a task."""
    return SHAPES[TASKS[task].family]


def validation_lessons(task: str, n: int, skip: int = 0) -> list[Lesson]:
    """Lessons that neither training nor evaluation holds, in order."""
    first = VALIDATION_FIRST + skip
    return [lesson(task, index) for index in range(first, first + n)]
