"""GSM-Hard's kind: gsm8k's stories with bigger numbers, and a program for each."""

import random
from dataclasses import replace

from c4.tasks.problems import gsm8k
from c4.tasks.problems._problem import Problem
from c4.tasks.problems._stories import program, tell

TERM, FACTOR, MOST = (9, 20), (3, 8), 80
BIGGER = {gsm8k.TERM: TERM, gsm8k.FACTOR: FACTOR, gsm8k.DOLLARS: (37, 60)}
STORIES = tuple(
    replace(story, limits={name: BIGGER[span] for name, span in story.limits.items()})
    for story in gsm8k.STORIES
)


def generate(rng: random.Random) -> Problem:
    story = rng.choice(STORIES)
    told = tell(rng, story, story.draw(rng, MOST))
    row = {"input": told.question, "code": program(told), "target": float(told.answer)}
    return Problem(row, told.solution, told.combinations)
