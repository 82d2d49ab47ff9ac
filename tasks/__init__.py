"""Tasks: the 13 benchmarks, their examples, prompts, answer extractors and graders.

A task is one value (`TASKS["gsm8k"]`) from one short file. Rows come from the hub, from a local
file with the hub's fields, or from the generators in `c4.tasks.problems`; prompts, extraction
and grading are the same code for all three. Knows nothing of models or tokens: text in, text
and character spans out.
"""

from c4.tasks._grade import Grade, Verdict, check_can_grade, grade
from c4.tasks._load import EMBEDDED_SOURCE, HUB_SOURCE, ORDER, Sample, SampleSet, load_samples
from c4.tasks._registry import TASKS, get_task
from c4.tasks._sandbox import Isolation, isolation
from c4.tasks._task import (
    AnswerReading,
    Candidate,
    Choices,
    Ending,
    Example,
    Extractor,
    Family,
    Grader,
    ReadingStyle,
    SearchMode,
    Shape,
    Task,
)

__all__ = [
    "EMBEDDED_SOURCE",
    "HUB_SOURCE",
    "ORDER",
    "TASKS",
    "AnswerReading",
    "Candidate",
    "Choices",
    "Ending",
    "Example",
    "Extractor",
    "Family",
    "Grade",
    "Grader",
    "Isolation",
    "ReadingStyle",
    "Sample",
    "SampleSet",
    "SearchMode",
    "Shape",
    "Task",
    "Verdict",
    "check_can_grade",
    "get_task",
    "grade",
    "isolation",
    "load_samples",
]
