r"""MATH's kind: expressions, equations and fractions, answered in `\boxed{}`."""

import random
from collections.abc import Callable
from math import gcd

from c4.tasks.problems._problem import Problem

LETTERS = "xyznkmtp"
Work = tuple[str, str, str, str, tuple[object, ...]]
"""Subject, problem, work, answer, combination."""


def _product_first(rng: random.Random) -> Work:
    a, b, c = rng.randint(2, 12), rng.randint(2, 6), rng.randint(2, 6)
    product, total = b * c, a + b * c
    return (
        "Prealgebra",
        rf"Compute ${a} + {b} \cdot {c}$.",
        f"The product of {b} and {c} comes first, so we multiply. "
        f"{b} * {c} = {product}. Then we add {a} and {product}. "
        f"{a} + {product} = {total}. So the value is {total}.",
        str(total),
        ("product", a, b, c),
    )


def _parentheses(rng: random.Random) -> Work:
    a, b, c = rng.randint(2, 6), rng.randint(2, 6), rng.randint(1, 12)
    left, total = b + c, a * b
    return (
        "Prealgebra",
        rf"Compute ${a}({left} - {c})$.",
        f"The difference of {left} and {c} comes first, so we subtract. "
        f"{left} - {c} = {b}. Then we multiply {a} and {b}. "
        f"{a} * {b} = {total}. So the value is {total}.",
        str(total),
        ("parentheses", a, b, c),
    )


def _evaluate(rng: random.Random) -> Work:
    letter = rng.choice(LETTERS)
    a, b, c = rng.randint(2, 6), rng.randint(2, 12), rng.randint(2, 6)
    product, total = a * c, a * c + b
    return (
        "Algebra",
        f"What is ${a}{letter} + {b}$ when ${letter} = {c}$?",
        f"Here {letter} is {c}, so first we multiply {a} and {c}. "
        f"{a} * {c} = {product}. Then we add {product} and {b}. "
        f"{product} + {b} = {total}. So the value is {total}.",
        str(total),
        ("evaluate", a, b, c),
    )


def _equation(rng: random.Random) -> Work:
    letter = rng.choice(LETTERS)
    a, b, x = rng.randint(2, 6), rng.randint(2, 12), rng.randint(2, 6)
    product, total = a * x, a * x + b
    return (
        "Algebra",
        f"Solve ${a}{letter} + {b} = {total}$ for ${letter}$.",
        f"First we subtract {b} from both sides. {total} - {b} = {product}. "
        f"So {a}{letter} = {product}. Then we divide both sides by {a}. "
        f"{product} / {a} = {x}. So {letter} = {x}.",
        str(x),
        ("equation", a, b, x),
    )


def _fraction_equation(rng: random.Random) -> Work:
    letter = rng.choice(LETTERS)
    a, b = rng.randint(3, 8), rng.randint(2, 12)
    top = rng.choice([n for n in range(1, a) if gcd(n, a) == 1])
    answer = rf"\frac{{{top}}}{{{a}}}"
    return (
        "Algebra",
        f"Solve ${a}{letter} + {b} = {top + b}$ for ${letter}$.",
        f"First we subtract {b} from both sides. {top + b} - {b} = {top}. "
        f"So {a}{letter} = {top}. Then we divide both sides by {a}. "
        f"{top} is less than {a}, so {letter} is {top} over {a}.",
        answer,
        ("fraction equation", a, b, top),
    )


def _fractions(rng: random.Random) -> Work:
    bottom = rng.randint(3, 8)
    while True:
        a, b, c = (rng.randint(1, 6) for _ in range(3))
        if gcd(a + b + c, bottom) == 1:
            break
    total = a + b + c
    terms = " + ".join(rf"\frac{{{n}}}{{{bottom}}}" for n in (a, b, c))
    answer = rf"\frac{{{total}}}{{{bottom}}}"
    return (
        "Prealgebra",
        f"Compute ${terms}$.",
        f"All three are over {bottom}, so we add {a}, {b} and {c}. "
        f"{a} + {b} = {a + b}. Then we add {a + b} and {c}. {a + b} + {c} = {total}. "
        f"So the sum is {total} over {bottom}.",
        answer,
        ("fractions", a, b, c, bottom),
    )


KINDS: tuple[Callable[[random.Random], Work], ...] = (
    _product_first,
    _parentheses,
    _evaluate,
    _equation,
    _fraction_equation,
    _fractions,
)


def generate(rng: random.Random) -> Problem:
    number = rng.randrange(len(KINDS))
    subject, problem, work, answer, combination = KINDS[number](rng)
    solution = rf"{work} The answer is \boxed{{{answer}}}."
    row = {
        "problem": problem,
        "solution": solution,
        "answer": answer,
        "subject": subject,
        "level": 1 + number // 2,
        "unique_id": f"embedded/{subject.lower()}/{'-'.join(map(str, combination[1:]))}.json",
    }
    return Problem(row, solution, (combination,))
