"""What happens next: two steps of an everyday script, and its third among those of others."""

import random

from c4.tasks.problems._problem import Problem
from c4.tasks.problems._words import NAMES

SCRIPTS = {
    "Making toast": ("cuts the bread", "puts it in the toaster", "butters the toast"),
    "Making tea": ("boils some water", "pours it on a tea bag", "lets the tea cool"),
    "Frying eggs": ("heats a pan", "breaks two eggs into it", "fries the eggs"),
    "Washing hands": ("turns on the tap", "rubs soap on both hands", "rinses off the soap"),
    "Brushing teeth": ("opens the toothpaste", "puts it on a brush", "brushes each tooth"),
    "Washing clothes": ("fills the washing machine", "starts it", "hangs up the wet clothes"),
    "Planting a seed": ("digs a small hole", "drops a seed in", "covers the seed with soil"),
    "Mailing a letter": ("writes a letter", "puts a stamp on it", "mails the letter"),
    "Reading": ("goes to the library", "finds a good book", "reads the book"),
    "Fishing": ("sits by the lake", "throws in the line", "pulls out a fish"),
    "Painting": ("opens the paint", "dips a wide brush in it", "paints the wall"),
    "Taking a bus": ("waits at the bus stop", "gets on the bus", "rides the bus to town"),
    "Soccer": ("runs with the ball", "comes near the goal", "scores a goal"),
    "Giving a gift": ("buys a gift", "wraps it for a friend", "hands over the gift"),
    "Taking a photo": ("picks up the camera", "looks through the lens", "snaps the photo"),
    "Fixing a bike": ("turns the bike over", "takes off the flat tire", "puts on a new tire"),
    "Swimming": ("goes to the pool", "puts on a swimsuit", "swims across the pool"),
    "Going to bed": ("puts on pajamas", "turns off the light", "falls asleep"),
    "Sledding": ("pulls a sled up the hill", "sits down on the sled", "slides down the hill"),
    "Playing piano": ("sits at the piano", "opens the music", "plays the song"),
    "Building a fire": ("stacks dry wood", "strikes a match", "lights the fire"),
}


def generate(rng: random.Random) -> Problem:
    """The start of a script, and four endings of which one belongs to it."""
    name, activity = rng.choice(NAMES), rng.choice(list(SCRIPTS))
    one, two, right = SCRIPTS[activity]
    wrong = rng.sample([steps[-1] for key, steps in SCRIPTS.items() if key != activity], 3)
    endings = [right, *wrong]
    rng.shuffle(endings)
    wording = rng.choice(("{0} {1}. {0} {2}.", "{0} {1} and {2}.", "First {0} {1}, then {2}."))
    ctx_a, ctx_b = wording.format(name, one, two), f"Next, {name}"
    row = {
        "ind": rng.randrange(10**9),
        "activity_label": activity,
        "ctx_a": ctx_a,
        "ctx_b": ctx_b,
        "ctx": f"{ctx_a} {ctx_b}",
        "endings": [f"{ending}." for ending in endings],
        "source_id": f"embedded~{rng.randrange(10**9)}",
        "split": "val",
        "split_type": "indomain",
        "label": str(endings.index(right)),
    }
    return Problem(row, f"{right}.", ((name, activity), (activity, *sorted(wrong))))
