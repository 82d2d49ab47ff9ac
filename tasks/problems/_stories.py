"""Arithmetic in words: calculations of one step, and stories of several, told and worked."""

import random
from collections.abc import Callable
from dataclasses import dataclass

from c4.tasks.problems._words import NAMES, OBJECTS

OPERATIONS: dict[str, Callable[[int, int], int]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": lambda a, b: a // b,
}
INVERSE = {"+": "-", "-": "+", "*": "/", "/": "*"}
VERBS = {"+": "add", "-": "subtract", "*": "multiply", "/": "divide"}


def equation(left: int, operator: str, right: int) -> str:
    return f"{left} {operator} {right} = {OPERATIONS[operator](left, right)}."


def checked(left: int, operator: str, right: int) -> str:
    """The calculation, its inverse, and the answer."""
    result = OPERATIONS[operator](left, right)
    inverse = INVERSE[operator]
    check = f"To check, we {VERBS[inverse]}: {equation(result, inverse, right)}"
    return f"{equation(left, operator, right)} {check} The answer is {result}."


def draw_operands(rng: random.Random, operator: str) -> tuple[int, int]:
    """Two small numbers whose result is a whole number from 2 to 36."""
    factors = rng.randint(2, 6), rng.randint(2, 6)
    terms = rng.randint(2, 12), rng.randint(2, 12)
    match operator:
        case "+":
            return terms
        case "-":
            return sum(terms), terms[1]
        case "*":
            return factors
        case _:
            return factors[0] * factors[1], factors[1]


@dataclass(frozen=True)
class Template:
    """A problem of one step: its text mentions the operands a and b, perhaps a useless d."""

    type: str
    operator: str
    body: str
    question: str
    work: str
    """Sentences that find the operation."""


@dataclass(frozen=True)
class Step:
    """A sentence, then `left operator right = result`; operands are named as in the text."""

    sentence: str
    left: str
    operator: str
    right: str
    result: str


@dataclass(frozen=True)
class Story:
    """A question about given numbers (a, b, c, d), and the steps to its answer."""

    limits: dict[str, tuple[int, int]]
    """The least and the greatest value of each given number."""
    question: str
    steps: tuple[Step, ...]
    closing: str

    def solve(self, given: dict[str, int]) -> dict[str, int]:
        """Every number in the text by name; the last is the answer."""
        numbers = dict(given)
        for step in self.steps:
            apply = OPERATIONS[step.operator]
            numbers[step.result] = apply(numbers[step.left], numbers[step.right])
        return numbers

    def draw(self, rng: random.Random, most: int) -> dict[str, int]:
        """Given numbers with which every step has a whole result from 2 to `most`."""
        while True:
            numbers = self.solve({name: rng.randint(*span) for name, span in self.limits.items()})
            if all(
                2 <= numbers[step.result] <= most
                and (step.operator != "/" or numbers[step.left] % numbers[step.right] == 0)
                for step in self.steps
            ):
                return {name: numbers[name] for name in self.limits}


@dataclass(frozen=True)
class Told:
    """A story with its people, things and numbers."""

    story: Story
    numbers: dict[str, int]
    question: str
    solution: str
    answer: int
    combinations: tuple[tuple[object, ...], ...]


def tell(rng: random.Random, story: Story, given: dict[str, int]) -> Told:
    """The story in words, with its calculations."""
    name, friend = rng.sample(NAMES, 2)
    things = rng.choice(OBJECTS)
    numbers = story.solve(given)
    words = {"name": name, "friend": friend, "things": things, **numbers}
    sentences = []
    for step in story.steps:
        worked = equation(numbers[step.left], step.operator, numbers[step.right])
        sentences += [step.sentence.format(**words), worked]
    answer = numbers[story.steps[-1].result]
    sentences += [story.closing.format(**words), f"The answer is {answer}."]
    return Told(
        story=story,
        numbers=numbers,
        question=story.question.format(**words),
        solution=" ".join(filter(None, sentences)),
        answer=answer,
        combinations=((name, things), (story.question, *given.values())),
    )


def program(told: Told) -> str:
    """The story's calculations as gsm-hard writes them, a function named `solution`."""
    given = {name for step in told.story.steps for name in (step.left, step.right)}
    given -= {step.result for step in told.story.steps}
    lines = ["def solution():", f'    """{told.question}"""']
    lines += [f"    {name} = {told.numbers[name]}" for name in sorted(given)]
    for step in told.story.steps:
        operator = step.operator.replace("/", "//")
        lines.append(f"    {step.result} = {step.left} {operator} {step.right}")
    result = told.story.steps[-1].result
    return "\n".join(["", *lines, f"    result = {result}", "    return result", ""])
