"""Little science: matter, magnets, living things, the body, instruments, energy, cause, effect."""

import random

from c4.tasks.problems._problem import Problem
from c4.tasks.problems._words import NAMES

CLASSES = (
    {
        "Which of these is a solid at room temperature?": ("stone", "wood", "iron", "brick"),
        "Which of these is a liquid at room temperature?": ("water", "milk", "oil", "juice", "tea"),
        "Which of these is a gas at room temperature?": ("air", "oxygen", "helium", "nitrogen"),
    },
    {
        "Which living thing makes its food with sunlight?": ("grass", "oak tree", "rose", "fern"),
        "Which living thing eats mostly plants?": ("cow", "sheep", "rabbit", "horse", "goat"),
        "Which living thing hunts animals for food?": ("wolf", "lion", "shark", "eagle", "owl"),
    },
)
MAGNETIC = "iron"
NOT_MAGNETIC = ("wooden", "plastic", "glass", "paper", "rubber", "clay", "gold")
SHAPES = ("ring", "ball", "cup", "box", "star", "plate", "ruler", "cube")
BODY = {
    "pumps blood": "heart", "is used to see": "eyes", "is used to hear": "ears",
    "is used to smell": "nose", "is used to taste": "tongue", "does our thinking": "brain",
    "gives oxygen to the blood": "lungs", "bites and chews": "teeth",
    "holds the body up": "bones", "breaks down food with acid": "stomach",
}  # fmt: skip
INSTRUMENTS = {
    "measure temperature": "thermometer", "measure weight": "scale", "measure time": "clock",
    "measure length": "ruler", "find north": "compass", "look at far stars": "telescope",
    "look at tiny cells": "microscope", "collect rain": "rain gauge",
}  # fmt: skip
ENERGY = {
    "a lamp": "light", "a flashlight": "light", "a lantern": "light", "a heater": "heat",
    "an oven": "heat", "a toaster": "heat", "a radio": "sound", "a speaker": "sound",
    "an alarm": "sound", "a fan": "motion", "a motor": "motion", "a drill": "motion",
}  # fmt: skip
EFFECTS = {
    "leaves ice in the hot sun": ("It melts", "It freezes", "It rusts", "It grows", "It burns"),
    "puts water in a freezer": ("It freezes", "It melts", "It rusts", "It grows", "It boils"),
    "keeps water over a hot fire": ("It boils", "It freezes", "It rusts", "It grows", "It burns"),
    "leaves an iron nail in the rain": ("It rusts", "It melts", "It boils", "It grows", "It burns"),
    "plants a seed in good wet soil": ("It grows", "It melts", "It boils", "It rusts", "It burns"),
    "drops dry paper into a fire": ("It burns", "It freezes", "It melts", "It grows", "It rusts"),
    "drops a stone into a lake": ("It sinks", "It floats", "It melts", "It burns", "It grows"),
    "drops a dry cork into a lake": ("It floats", "It sinks", "It melts", "It burns", "It rusts"),
}

Draft = tuple[str, str, list[str], tuple[object, ...]]
"""Question, right choice, three wrong ones, and what makes the problem new."""


def generate(rng: random.Random) -> Problem:
    """A science question with four choices labelled A to D."""
    kinds = (_class, _class, _magnet, _body, _instrument, _energy, _effect, _effect)
    question, right, wrong, combination = rng.choice(kinds)(rng)
    choices = [right, *wrong]
    rng.shuffle(choices)
    row = {
        "id": f"Embedded_{rng.randrange(10**9)}",
        "question": question,
        "choices": {"text": choices, "label": list("ABCD")},
        "answerKey": "ABCD"[choices.index(right)],
    }
    return Problem(row, right, (combination,))


def _class(rng: random.Random) -> Draft:
    table = rng.choice(CLASSES)
    question = rng.choice(list(table))
    right = rng.choice(table[question])
    others = [item for other, items in table.items() if other != question for item in items]
    wrong = rng.sample(others, 3)
    return question, right, wrong, (right, *sorted(wrong))


def _magnet(rng: random.Random) -> Draft:
    shapes = rng.sample(SHAPES, 4)
    materials = (MAGNETIC, *rng.sample(NOT_MAGNETIC, 3))
    pairs = zip(materials, shapes, strict=True)
    right, *wrong = (f"{material} {shape}" for material, shape in pairs)
    question = rng.choice(("Which object will a magnet pull?", "What will stick to a magnet?"))
    return question, right, wrong, (right, *sorted(wrong))


def _body(rng: random.Random) -> Draft:
    wordings = ("Which part of the body {}?", "What part of the body {}?")
    return _lookup(rng, wordings, BODY)


def _instrument(rng: random.Random) -> Draft:
    wordings = ("Which tool is used to {}?", "What should a class use to {}?")
    return _lookup(rng, wordings, INSTRUMENTS)


def _lookup(rng: random.Random, wordings: tuple[str, ...], table: dict[str, str]) -> Draft:
    use = rng.choice(list(table))
    wrong = rng.sample([part for other, part in table.items() if other != use], 3)
    question = rng.choice(wordings).format(use)
    return question, table[use], wrong, (table[use], *sorted(wrong))


def _energy(rng: random.Random) -> Draft:
    name, device = rng.choice(NAMES), rng.choice(list(ENERGY))
    right = ENERGY[device]
    wrong = [kind for kind in ("light", "heat", "sound", "motion") if kind != right]
    ask = rng.choice(("What is it meant to give?", "Which energy is it meant to give?"))
    return f"{name} turns on {device}. {ask}", right, wrong, (name, device)


def _effect(rng: random.Random) -> Draft:
    name, cause = rng.choice(NAMES), rng.choice(list(EFFECTS))
    right, *others = EFFECTS[cause]
    question = f"{name} {cause}. " + rng.choice(("What happens?", "What happens to it?"))
    return question, right, rng.sample(others, 3), (name, cause)
