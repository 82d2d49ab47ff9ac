"""Everyday goals: the sensible tool of two, the other one being right for another goal."""

import random

from c4.tasks.problems._problem import Problem
from c4.tasks.problems._words import NAMES

# Each goal: the tool for it, then any other goals' tools that could do it too.
TOOLS = {
    "cut paper": ("scissors", "saw", "ruler"),
    "cut a log": ("saw",),
    "hit a nail": ("hammer", "shovel"),
    "dig a hole": ("shovel", "spoon", "hammer", "bucket"),
    "eat soup": ("spoon",),
    "sweep the floor": ("broom", "towel", "sponge"),
    "dry wet hair": ("towel", "blanket", "sponge"),
    "wash dishes": ("sponge", "towel", "bucket"),
    "stay dry in the rain": ("umbrella", "blanket", "towel"),
    "open a locked door": ("key", "hammer", "saw", "shovel"),
    "join two sheets of paper": ("glue", "needle"),
    "write a note": ("pen",),
    "sew a button on": ("needle",),
    "get on the roof": ("ladder", "rope"),
    "carry water": ("bucket", "spoon", "sponge", "pump"),
    "bake bread": ("oven",),
    "make ice": ("freezer",),
    "read in the dark": ("lamp",),
    "keep warm in bed": ("blanket", "towel"),
    "find the way in a city": ("map",),
    "know the time": ("clock",),
    "tidy messy hair": ("comb", "scissors"),
    "weigh a bag": ("scale",),
    "measure a line": ("ruler", "rope", "scale"),
    "fill a flat tire": ("pump",),
    "tie up a boat": ("rope", "net"),
    "catch fish": ("net", "bucket", "rope"),
    "look at far stars": ("telescope",),
}
WORDINGS = ("{} wants to {}. What helps?", "What does {} need to {}?", "{} has to {}. With what?")


def generate(rng: random.Random) -> Problem:
    """A goal and two ways to reach it, of which one works."""
    name, goal = rng.choice(NAMES), rng.choice(list(TOOLS))
    right, *also = TOOLS[goal]
    wrong = rng.choice([tool for tool, *_ in TOOLS.values() if tool not in (right, *also)])
    solutions = [right, wrong]
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
