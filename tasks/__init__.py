"""Tasks: the 13 benchmarks, their examples, prompts, answer extractors and graders.

A task is one `Task`, such as `TASKS["gsm8k"]`, defined in one short file. Rows come from the hub,
from a local file with the hub's fields, or from the generators in `c4.tasks.problems`; prompts,
extraction and grading are the same code for all three. Nothing here needs a model, and only
`vocabulary` deals with tokens: extractors take text and return character spans.
"""

from c4.tasks.examples import load_samples
from c4.tasks.grading import Grade, Verdict, grade
from c4.tasks.reading.answers import EXTRACTORS, answers
from c4.tasks.reading.extractors import Finder, read_under
from c4.tasks.registry import TASKS, find_task
from c4.tasks.task import (
    AnswerReading,
    Candidate,
    Ending,
    Example,
    Family,
    Grader,
    HubSplit,
    ReadingStyle,
    SearchMode,
    Shape,
    Task,
)

__all__ = [
    "EXTRACTORS",
    "TASKS",
    "AnswerReading",
    "Candidate",
    "Ending",
    "Example",
    "Family",
    "Finder",
    "Grade",
    "Grader",
    "HubSplit",
    "ReadingStyle",
    "SearchMode",
    "Shape",
    "Task",
    "Verdict",
    "answers",
    "find_task",
    "grade",
    "load_samples",
    "read_under",
]
