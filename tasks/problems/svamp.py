"""SVAMP's kind: one step, and one number that has nothing to do with it."""

import random

from c4.tasks.problems._problem import Problem
from c4.tasks.problems._stories import OPERATIONS, Template, checked, draw_operands
from c4.tasks.problems._words import NAMES, OBJECTS

TEMPLATES = (
    Template(
        "Subtraction", "-",
        "{name} has {a} {things} and {d} {others}. {name} loses {b} {things}.",
        "How many {things} does {name} have left?",
        "The question is about {things}. The {d} {others} do not matter. "
        "{name} has {a} {things} and loses {b}, so we subtract {b} from {a}.",
    ),
    Template(
        "Addition", "+",
        "{name} has {d} {others} and {a} {things}. {friend} gives {name} {b} more {things}.",
        "How many {things} does {name} have now?",
        "The question is about {things}. The {d} {others} do not matter. "
        "{name} has {a} {things} and gets {b} more, so we add {b} to {a}.",
    ),
    Template(
        "Multiplication", "*",
        "{name} has {a} boxes and {d} bags. Each box holds {b} {things}.",
        "How many {things} are in the boxes?",
        "The question is about boxes. The {d} bags do not matter. "
        "There are {a} boxes with {b} {things} each, so we multiply {a} by {b}.",
    ),
    Template(
        "Common-Division", "/",
        "{name} puts {a} {things} into {b} bags equally. {friend} has {d} {others}.",
        "How many {things} are in each bag?",
        "The question is about {things}. The {d} {others} do not matter. "
        "{a} {things} go into {b} bags, so we divide {a} by {b}.",
    ),
    Template(
        "Subtraction", "-",
        "{name} has {a} {things}, {friend} has {b} {things} and {other} has {d} {things}.",
        "How many more {things} does {name} have than {friend}?",
        "The question is about {name} and {friend}. The {d} {things} of {other} do not matter. "
        "{name} has {a} and {friend} has {b}, so we subtract {b} from {a}.",
    ),
)  # fmt: skip


def generate(rng: random.Random) -> Problem:
    template = rng.choice(TEMPLATES)
    a, b = draw_operands(rng, template.operator)
    d = rng.choice([n for n in range(2, 13) if n not in (a, b)])
    name, friend, other = rng.sample(NAMES, 3)
    things, others = rng.sample(OBJECTS, 2)
    words = {"name": name, "friend": friend, "other": other, "things": things, "others": others}
    body, question, work = (
        text.format(**words, a=a, b=b, d=d)
        for text in (template.body, template.question, template.work)
    )
    combination = (template.operator, a, b, d)
    row = {
        "ID": "chal-" + "-".join(map(str, combination[1:])),
        "Body": body,
        "Question": question,
        "Equation": f"( {a}.0 {template.operator} {b}.0 )",
        "Answer": str(OPERATIONS[template.operator](a, b)),
        "Type": template.type,
        "question_concat": f"{body} {question}",
    }
    solution = f"{work} {checked(a, template.operator, b)}"
    return Problem(row, solution, ((name, things), combination))
