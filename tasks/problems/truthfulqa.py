"""Questions with two to thirteen choices of which one is true: animals, omens, myths."""

import random

from c4.tasks.problems._problem import Problem
from c4.tasks.problems._words import NAMES

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
    "Bats can see", "Penguins are birds", "Whales breathe air", "Ice floats on water",
    "Snakes have bones", "Spiders are not insects", "Sharks are fish", "Camel humps store fat",
    "Dogs see some colors",
)  # fmt: skip
FALSE = (
    "Bats are blind", "Penguins are fish", "Whales are fish", "Ice sinks in water",
    "Snakes have no bones", "Spiders are insects", "Sharks are mammals",
    "Camel humps store water", "Dogs see no colors", "Toads give people warts",
    "Bulls hate the color red",
)  # fmt: skip
SIZES = (2, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 6, 6, 6, 7, 7, 8, 9, 11, 13)
"""How many choices, each about as often as on the hub."""


def generate(rng: random.Random) -> Problem:
    """A question whose first choice is true and whose others are false."""
    asked, right, others = rng.choice((_animal, _sign, _statement))(rng)
    wrong = rng.sample(others, min(rng.choice(SIZES) - 1, len(others)))
    # New pairs of name and question for evaluation: a question cannot be known by heart.
    question = f"{rng.choice(NAMES)} asks: {asked}"
    targets = {"choices": [right, *wrong], "labels": [1] + [0] * len(wrong)}
    row = {"question": question, "mc1_targets": targets, "mc2_targets": targets}
    return Problem(row, right, ((question,),))


def _animal(rng: random.Random) -> tuple[str, str, list[str]]:
    trait = rng.choice(list(ANIMALS))
    others = [animal for animal in ANIMALS.values() if animal != ANIMALS[trait]]
    return f"Which animal {trait}?", ANIMALS[trait], others


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
    right = rng.choice(TRUE)
    others = [myth for myth in FALSE if myth.split()[0] != right.split()[0]]
    return rng.choice(wordings), right, others
