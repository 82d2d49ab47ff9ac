"""Pronoun puzzles: twin sentences whose last words decide which of two people is meant."""

import random

from c4.tasks.problems._problem import Problem
from c4.tasks.problems._words import NAMES, OBJECTS

# Each sentence about {0} and {1}: an ending that means {0}, an ending that means {1}.
TWINS = (
    ("{0} gave some {2} to {1} because _", "had too many.", "had none."),
    ("{0} sold the {2} to {1} because _", "needed money.", "wanted to own them."),
    ("{0} asked {1} about the {2} because _", "did not know much.", "knew a lot."),
    ("{0} carried the {2} for {1} because _", "was strong.", "was tired."),
    ("{0} has more {2} than {1}, so _", "has the bigger pile.", "has the smaller pile."),
    ("{0} counts {2} faster than {1}, so _", "is done first.", "is done last."),
    ("{0} thanked {1} for the {2} because _", "got them as a gift.", "gave them as a gift."),
)


def generate(rng: random.Random) -> Problem:
    """A sentence with one blank, and the two people who may fill it."""
    first, second = rng.sample(NAMES, 2)
    thing = rng.choice(OBJECTS)
    start, *endings = rng.choice(TWINS)
    meant = rng.randrange(2)
    right = (first, second)[meant]
    options = [first, second]
    rng.shuffle(options)
    row = {
        "sentence": f"{start.format(first, second, thing)} {endings[meant]}",
        "option1": options[0],
        "option2": options[1],
        "answer": str(options.index(right) + 1),
    }
    return Problem(row, right, ((first, second), (first, thing)))
