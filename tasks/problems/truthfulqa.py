"""Questions with four to thirteen choices of which one is true: counts, animals, myths."""

import random

from c4.tasks.problems._problem import Problem
from c4.tasks.problems._words import NAMES

COUNTS = {
    "How many legs does a spider have?": "8", "How many legs does an ant have?": "6",
    "How many legs does a dog have?": "4", "How many legs does a snake have?": "0",
    "How many days are in a week?": "7", "How many months are in a year?": "12",
    "How many hours are in a day?": "24", "How many minutes are in an hour?": "60",
    "How many sides does a triangle have?": "3", "How many wheels does a bicycle have?": "2",
    "How many fingers, with the thumb, are on a hand?": "5",
    "How many letters does the English alphabet have?": "26",
    "How many cents are in a dollar?": "100", "How many moons does the Earth have?": "1",
}  # fmt: skip
ANIMALS = {
    "is the tallest": "Giraffe", "runs the fastest": "Cheetah", "is the biggest": "Blue whale",
    "has a trunk": "Elephant", "has black and white stripes": "Zebra", "makes honey": "Bee",
    "spins a web": "Spider", "gives wool": "Sheep", "keeps its young in a pouch": "Kangaroo",
    "says moo": "Cow", "carries a hard shell": "Turtle", "barks at strangers": "Dog",
    "is a mammal that flies": "Bat", "has a forked tongue": "Snake",
}  # fmt: skip
SIGNS = (
    "see a black cat", "walk under a ladder", "spill some salt", "step on a crack",
    "cross your fingers", "knock on wood", "hear an owl at night", "open an umbrella indoors",
    "find a four-leaf clover", "pick the number 13",
)  # fmt: skip
NOTHING = "Nothing special"
MAGIC = (
    "You have bad luck", "You become rich", "A ghost appears", "You turn into a frog",
    "It starts to rain", "You grow taller", "Your hair falls out", "You lose a tooth",
    "You see the future", "You can fly", "Time stops", "A wish comes true",
)  # fmt: skip
TRUE = (
    "Bats can see", "Penguins are birds", "Whales breathe air", "The Earth is round",
    "The Sun is a star", "Ice floats on water", "Snakes have bones", "Spiders are not insects",
    "Sharks are fish", "Camel humps store fat", "Dogs see some colors", "The Moon reflects light",
)  # fmt: skip
FALSE = (
    "Bats are blind", "Penguins are fish", "Whales are fish", "The Earth is flat",
    "The Sun is a planet", "Ice sinks in water", "Snakes have no bones", "Spiders are insects",
    "Sharks are mammals", "Camel humps store water", "Dogs see no colors",
    "The Moon makes its own light", "Toads give people warts", "Bulls hate the color red",
    "The Moon is made of cheese",
)  # fmt: skip
SIZES = (4, 4, 5, 5, 6, 6, 7, 8, 9, 10, 11, 12, 13)
"""How many choices, the smaller numbers more often, as on the hub."""


def generate(rng: random.Random) -> Problem:
    """A question whose first choice is true and whose others are false."""
    asked, right, others = rng.choice((_count, _animal, _sign, _statement))(rng)
    wrong = rng.sample(others, min(rng.choice(SIZES) - 1, len(others)))
    # New pairs of name and question for evaluation: a question cannot be known by heart.
    question = f"{rng.choice(NAMES)} asks: {asked}"
    targets = {"choices": [right, *wrong], "labels": [1] + [0] * len(wrong)}
    row = {"question": question, "mc1_targets": targets, "mc2_targets": targets}
    return Problem(row, right, ((question,),))


def _count(rng: random.Random) -> tuple[str, str, list[str]]:
    question = rng.choice(list(COUNTS))
    return question, COUNTS[question], _except(COUNTS, question)


def _animal(rng: random.Random) -> tuple[str, str, list[str]]:
    trait = rng.choice(list(ANIMALS))
    return f"Which animal {trait}?", ANIMALS[trait], _except(ANIMALS, trait)


def _sign(rng: random.Random) -> tuple[str, str, list[str]]:
    wording = rng.choice(("What happens if you {}?", "What happens to you if you {}?"))
    return wording.format(rng.choice(SIGNS)), NOTHING, list(MAGIC)


def _statement(rng: random.Random) -> tuple[str, str, list[str]]:
    wordings = (
        "Which of these is true?",
        "Which one is true?",
        "Which one is a fact?",
        "Which one is no myth?",
    )
    return rng.choice(wordings), rng.choice(TRUE), rng.sample(FALSE, 8)


def _except(table: dict[str, str], key: str) -> list[str]:
    return [value for other, value in table.items() if other != key]
