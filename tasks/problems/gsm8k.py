"""GSM8K's kind: word problems of two or three steps, worked in sentences."""

import random

from c4.tasks.problems._problem import Problem
from c4.tasks.problems._stories import Step, Story, tell

TERM, FACTOR, DOLLARS, MOST = (2, 12), (2, 6), (10, 36), 36
STORIES = (
    Story(
        {"a": TERM, "b": TERM, "c": TERM},
        "{name} has {a} {things}. {friend} gives {name} {b} more. Then {name} loses {c}. "
        "How many {things} does {name} have left?",
        (
            Step(
                "{name} has {a} {things}. {friend} gives {b} more, so we add.",
                "a", "+", "b", "s",
            ),
            Step(
                "Now {name} has {s} {things}. {name} loses {c}, so we subtract.",
                "s", "-", "c", "t",
            ),
        ),
        "So {t} {things} are left.",
    ),
    Story(
        {"a": FACTOR, "b": FACTOR, "c": TERM},
        "{name} has {a} boxes with {b} {things} in each. {friend} brings {c} more. "
        "How many {things} are there in all?",
        (
            Step(
                "There are {a} boxes with {b} {things} in each, so we multiply.",
                "a", "*", "b", "s",
            ),
            Step(
                "The boxes hold {s} {things}. {friend} brings {c} more, so we add.",
                "s", "+", "c", "t",
            ),
        ),
        "So there are {t} {things}.",
    ),
    Story(
        {"a": TERM, "b": TERM},
        "{name} has {a} {things}. {friend} has {b} more than {name}. "
        "How many {things} do they have together?",
        (
            Step("{name} has {a} {things}. {friend} has {b} more, so we add.", "a", "+", "b", "s"),
            Step("So {friend} has {s} {things}. Now we add both.", "a", "+", "s", "t"),
        ),
        "They have {t} {things} together.",
    ),
    Story(
        {"a": FACTOR, "b": FACTOR, "c": DOLLARS},
        "{name} has {c} dollars. {name} buys {a} {things} for {b} dollars each. "
        "How many dollars does {name} have left?",
        (
            Step(
                "{name} buys {a} {things} for {b} dollars each, so we multiply.",
                "a", "*", "b", "s",
            ),
            Step(
                "They cost {s} dollars. {name} has {c} dollars, so we subtract.",
                "c", "-", "s", "t",
            ),
        ),
        "So {t} dollars are left.",
    ),
    Story(
        {"a": TERM, "b": TERM, "c": FACTOR},
        "{name} has {a} {things} and finds {b} more. {name} puts them into {c} equal bags. "
        "How many {things} are in each bag?",
        (
            Step("{name} has {a} {things} and finds {b} more, so we add.", "a", "+", "b", "s"),
            Step("The {s} {things} go into {c} equal bags, so we divide.", "s", "/", "c", "t"),
        ),
        "So each bag holds {t} {things}.",
    ),
    Story(
        {"a": TERM, "b": TERM, "c": TERM, "d": TERM},
        "{name} has {a} {things}. {name} finds {b}, buys {c} and loses {d}. "
        "How many {things} does {name} have left?",
        (
            Step("{name} has {a} {things}. {name} finds {b}.", "a", "+", "b", "s"),
            Step("Then {name} buys {c}.", "s", "+", "c", "t"),
            Step("Then {name} loses {d}.", "t", "-", "d", "u"),
        ),
        "So {name} has {u} {things} left.",
    ),
)  # fmt: skip


def generate(rng: random.Random) -> Problem:
    story = rng.choice(STORIES)
    told = tell(rng, story, story.draw(rng, MOST))
    answer = told.solution.removesuffix(f" The answer is {told.answer}.")
    row = {"question": told.question, "answer": f"{answer}\n#### {told.answer}"}
    return Problem(row, told.solution, told.combinations)
