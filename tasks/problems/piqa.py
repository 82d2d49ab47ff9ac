"""Everyday goals: the sensible tool of two, the other one being right for another goal."""

import random

from c4.tasks.problems._problem import Problem
from c4.tasks.problems._words import NAMES

# Each goal: the tool for it, then any other goals' tools that could do it too.
TOOLS = {
    "cut paper": ("scissors", "a saw", "a ruler"),
    "cut a log": ("a saw",),
    "hit a nail": ("a hammer", "a shovel"),
    "dig a hole": ("a shovel", "a spoon", "a hammer", "a bucket"),
    "eat soup": ("a spoon",),
    "sweep the floor": ("a broom", "a towel", "a sponge"),
    "dry wet hair": ("a towel", "a blanket", "a sponge"),
    "wash dishes": ("a sponge", "a towel", "a bucket"),
    "stay dry in the rain": ("an umbrella", "a blanket", "a towel"),
    "open a locked door": ("a key", "a hammer", "a saw", "a shovel"),
    "join two sheets of paper": ("glue", "a needle"),
    "write a note": ("a pen",),
    "sew a button on": ("a needle",),
    "get on the roof": ("a ladder", "a rope"),
    "carry water": ("a bucket", "a spoon", "a sponge", "a pump"),
    "bake bread": ("an oven",),
    "make ice": ("a freezer",),
    "read in the dark": ("a lamp",),
    "keep warm in bed": ("a blanket", "a towel"),
    "find the way in a city": ("a map",),
    "know the time": ("a clock",),
    "tidy messy hair": ("a comb", "scissors"),
    "weigh a bag": ("a scale",),
    "measure a line": ("a ruler", "a rope", "a scale"),
    "fill a flat tire": ("a pump",),
    "tie up a boat": ("a rope", "a net"),
    "catch fish": ("a net", "a bucket", "a rope"),
    "look at far stars": ("a telescope",),
}
WORDINGS = ("{} wants to {}.", "How can {} {}?", "{} has to {}.")


def generate(rng: random.Random) -> Problem:
    """A goal and two ways to reach it, of which one works."""
    name, goal = rng.choice(NAMES), rng.choice(list(TOOLS))
    right, *also = TOOLS[goal]
    wrong = rng.choice([tool for tool, *_ in TOOLS.values() if tool not in (right, *also)])
    solutions = [f"Use {right}.", f"Use {wrong}."]
    label = rng.randrange(2)
    if label:
        solutions.reverse()
    row = {
        "goal": rng.choice(WORDINGS).format(name, goal),
        "sol1": solutions[0],
        "sol2": solutions[1],
        "label": label,
    }
    return Problem(row, solutions[label], ((name, goal), (goal, wrong)))
