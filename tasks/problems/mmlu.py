"""Closed-world facts, classes of things, what comes next, and comparisons of four numbers."""

import random

from c4.tasks.problems._problem import Problem

# Each kind of fact: wordings, subject, and what each thing's answer is.
FACTS = (
    (
        ("What is the capital of {}?", "Which city is the capital of {}?"),
        "high_school_geography",
        {
            "France": "Paris", "Italy": "Rome", "Spain": "Madrid", "Japan": "Tokyo",
            "Egypt": "Cairo", "Peru": "Lima", "Cuba": "Havana", "Kenya": "Nairobi",
            "Greece": "Athens", "Norway": "Oslo", "Germany": "Berlin", "Russia": "Moscow",
            "China": "Beijing", "Iraq": "Baghdad",
        },
    ),
    (
        ("What is the opposite of {}?", "Which word means the opposite of {}?"),
        "miscellaneous",
        {
            "hot": "cold", "big": "small", "fast": "slow", "wet": "dry", "up": "down",
            "day": "night", "full": "empty", "old": "new", "hard": "soft", "open": "closed",
            "happy": "sad", "rich": "poor", "early": "late", "strong": "weak", "left": "right",
            "first": "last",
        },
    ),
    (
        ("What is a young {} called?", "What do we call a young {}?"),
        "miscellaneous",
        {
            "dog": "puppy", "cat": "kitten", "cow": "calf", "sheep": "lamb", "horse": "foal",
            "bear": "cub", "duck": "duckling", "goose": "gosling", "frog": "tadpole",
            "deer": "fawn", "pig": "piglet", "goat": "kid",
        },
    ),
)  # fmt: skip
DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September",
    "October", "November", "December",
)  # fmt: skip
ANIMALS = {
    "a bird": ("owl", "duck", "hen", "crow", "eagle", "swan"),
    "a fish": ("tuna", "cod", "trout", "salmon", "shark", "carp"),
    "an insect": ("ant", "bee", "fly", "moth", "wasp", "beetle"),
    "a mammal": ("cow", "dog", "cat", "horse", "pig", "bear"),
}
THINGS = {
    "a fruit": ("apple", "pear", "plum", "grape", "peach", "cherry"),
    "a metal": ("iron", "gold", "silver", "tin", "copper", "zinc"),
    "clothing": ("shirt", "coat", "sock", "hat", "shoe", "glove"),
    "a musical instrument": ("drum", "flute", "piano", "violin", "harp", "trumpet"),
}

Draft = tuple[str, str, str, list[str]]
"""Question, subject, right choice, three wrong ones."""


def generate(rng: random.Random) -> Problem:
    """A question with four choices of one category."""
    kinds = (_fact, _fact, _fact, _fact, _next, _class, _class, _extreme)
    question, subject, right, wrong = rng.choice(kinds)(rng)
    choices = [right, *wrong]
    rng.shuffle(choices)
    row = {
        "question": question,
        "subject": subject,
        "choices": choices,
        "answer": choices.index(right),
    }
    return Problem(row, right, ((subject, right, *sorted(wrong)),))


def _fact(rng: random.Random) -> Draft:
    wordings, subject, answers = rng.choice(FACTS)
    thing = rng.choice(list(answers))
    others = [answer for key, answer in answers.items() if key != thing]
    question = rng.choice(wordings).format(thing)
    return question, subject, answers[thing], rng.sample(others, 3)


def _next(rng: random.Random) -> Draft:
    unit, cycle = rng.choice((("day", DAYS), ("month", MONTHS)))
    at = rng.randrange(len(cycle))
    right = cycle[(at + 1) % len(cycle)]
    others = [item for item in cycle if item not in (cycle[at], right)]
    question = f"Which {unit} comes right after {cycle[at]}?"
    return question, "miscellaneous", right, rng.sample(others, 3)


def _class(rng: random.Random) -> Draft:
    table, subject = rng.choice(((ANIMALS, "high_school_biology"), (THINGS, "miscellaneous")))
    group = rng.choice(list(table))
    others = [item for other, items in table.items() if other != group for item in items]
    wording = rng.choice(("Which of these is {}?", "Which one is {}?"))
    return wording.format(group), subject, rng.choice(table[group]), rng.sample(others, 3)


def _extreme(rng: random.Random) -> Draft:
    numbers = rng.sample(range(1, 100), 4)
    word, pick = rng.choice((("largest", max), ("smallest", min)))
    right = pick(numbers)
    wrong = [str(number) for number in numbers if number != right]
    wording = rng.choice(("Which number is the {}?", "Which of these numbers is {}?"))
    return wording.format(word), "elementary_mathematics", str(right), wrong
