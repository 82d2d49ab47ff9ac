"""GSM-Hard's kind: gsm8k's stories with bigger numbers, tens and ones worked apart."""

import random

from c4.tasks.problems._problem import Problem
from c4.tasks.problems._stories import Step, Story, equation, program, tell

TERM, FACTOR, MOST = (11, 49), (2, 5), 99
STORIES = (
    Story(
        {"a": TERM, "b": TERM, "c": TERM},
        "{name} has {a} {things}. {friend} gives {name} {b} more. Then {name} loses {c}. "
        "How many {things} does {name} have left?",
        (
            Step("{name} has {a} {things}. {friend} gives {b} more.", "a", "+", "b", "s"),
            Step("Then {name} loses {c} of them.", "s", "-", "c", "t"),
        ),
        "",
    ),
    Story(
        {"a": TERM, "b": TERM},
        "{name} has {a} {things}. {friend} has {b} more than {name}. "
        "How many {things} do they have together?",
        (
            Step("{name} has {a} {things}. {friend} has {b} more.", "a", "+", "b", "s"),
            Step("Now we add the {a} of {name}.", "s", "+", "a", "t"),
        ),
        "",
    ),
    Story(
        {"a": TERM, "b": TERM, "c": TERM},
        "{name} finds {a} {things}. {friend} finds {b} and buys {c} more. "
        "How many {things} do they have together?",
        (
            Step("{name} finds {a} {things}. {friend} finds {b}.", "a", "+", "b", "s"),
            Step("Then {friend} buys {c} more.", "s", "+", "c", "t"),
        ),
        "",
    ),
    Story(
        {"a": FACTOR, "b": (11, 29), "c": (11, 19)},
        "{name} has {a} boxes with {b} {things} in each. {friend} takes {c}. "
        "How many {things} are left?",
        (
            Step("{a} boxes hold {b} each.", "a", "*", "b", "s"),
            Step("{friend} takes {c}.", "s", "-", "c", "t"),
        ),
        "",
    ),
)


def generate(rng: random.Random) -> Problem:
    story = rng.choice(STORIES)
    given = story.draw(rng, MOST)
    while any(number % 10 == 0 for number in given.values()):
        given = story.draw(rng, MOST)
    told = tell(rng, story, given, _tens_then_ones)
    row = {"input": told.question, "code": program(told), "target": float(told.answer)}
    return Problem(row, told.solution, told.combinations)


def _tens_then_ones(left: int, operator: str, right: int) -> str:
    """`47 + 38` as `47 + 30 = 77. 77 + 8 = 85.`; factors likewise, then the sum."""
    tens, ones = right - right % 10, right % 10
    if not tens or not ones:
        return equation(left, operator, right)
    if operator == "*":
        parts = [(left, "*", tens), (left, "*", ones), (left * tens, "+", left * ones)]
    else:
        middle = left + tens if operator == "+" else left - tens
        parts = [(left, operator, tens), (middle, operator, ones)]
    return " ".join(equation(*part) for part in parts)
