"""ASDiv's kind: a single step in varied wording."""

import random

from c4.tasks.problems._problem import Problem
from c4.tasks.problems._stories import OPERATIONS, Template, checked, draw_operands
from c4.tasks.problems._words import NAMES, OBJECTS

TEMPLATES = (
    Template(
        "Addition", "+",
        "{name} collects {a} {things}. {friend} collects {b} {things}.",
        "How many {things} do they collect in all?",
        "{name} collects {a} {things}. {friend} collects {b} {things}. "
        "The question asks how many they collect in all, so we add {b} to {a}.",
    ),
    Template(
        "Subtraction", "-",
        "{name} packs {a} {things}. {friend} takes {b} of them.",
        "How many {things} remain?",
        "{name} packs {a} {things}. {friend} takes {b} of them. "
        "The question asks how many {things} remain, so we subtract {b} from {a}.",
    ),
    Template(
        "Multiplication", "*",
        "Each shelf holds {a} {things}. {name} fills {b} shelves.",
        "How many {things} are on the shelves?",
        "Each shelf holds {a} {things}. {name} fills {b} shelves. "
        "The question asks about all shelves, so we multiply {a} by {b}.",
    ),
    Template(
        "Common-Division", "/",
        "{name} hands {a} {things} to {b} friends equally.",
        "How many {things} does each friend get?",
        "{name} hands out {a} {things}. There are {b} friends. "
        "The question asks how many each friend gets, so we divide {a} by {b}.",
    ),
    Template(
        "Comparison", "-",
        "{name} owns {a} {things}. {friend} owns {b} {things}.",
        "How many more {things} does {name} own than {friend}?",
        "{name} owns {a} {things}. {friend} owns {b} {things}. "
        "The question asks how many more {name} owns, so we subtract {b} from {a}.",
    ),
    Template(
        "Sum", "+",
        "{name} sells {a} {things} today. That leaves {b} {things} in the shop.",
        "How many {things} were in the shop before?",
        "{name} sells {a} {things}. That leaves {b} {things} in the shop. "
        "The question asks how many were there before, so we add {b} to {a}.",
    ),
)  # fmt: skip


def generate(rng: random.Random) -> Problem:
    template = rng.choice(TEMPLATES)
    operator = template.operator
    a, b = draw_operands(rng, operator)
    name, friend = rng.sample(NAMES, 2)
    things = rng.choice(OBJECTS)
    words = {"name": name, "friend": friend, "things": things, "a": a, "b": b}
    result = OPERATIONS[operator](a, b)
    row = {
        "body": template.body.format(**words),
        "question": template.question.format(**words),
        "solution_type": template.type,
        "answer": f"{result} ({things})",
        "formula": f"{a}{operator}{b}={result}",
    }
    solution = f"{template.work.format(**words)} {checked(a, operator, b)}"
    return Problem(row, solution, ((name, things), (template.type, things, a, b)))
