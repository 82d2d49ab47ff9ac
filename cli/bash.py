"""Completion in bash, which breaks words at colons and equals signs.

It asks for what follows the last break and inserts the answer there, so `my_gates.py:Calm` and
`runs/model=tiny` come in pieces. They are put together before typer sees them, and what stands
before the last break is left out of the answer.
"""

import io
import os
import re
from collections.abc import Callable, Sequence
from contextlib import redirect_stdout, suppress
from typing import Any

BREAKS = re.compile(r"[:=]+")


def bash_asks() -> bool:
    """Whether bash has called to complete a command line."""
    return os.environ.get("_C4_COMPLETE") == "complete_bash"


def complete_bash(answer: Callable[[], Any]) -> str:
    """What fits the word at the cursor, a line each, as bash can insert it.

    Args:
        answer: has typer print what fits whole words.
    """
    broken, place = os.environ["COMP_WORDS"].split("\n"), int(os.environ["COMP_CWORD"])
    words, place = join_words(broken, place)
    os.environ |= {"COMP_WORDS": "\n".join(words), "COMP_CWORD": str(place)}
    printed = io.StringIO()
    with redirect_stdout(printed), suppress(SystemExit):
        answer()
    known = inserted_already(words[place] if place < len(words) else "")
    return "".join(f"{line.removeprefix(known)}\n" for line in printed.getvalue().splitlines())


def join_words(broken: Sequence[str], place: int) -> tuple[list[str], int]:
    """Words as they were typed, and which of them the cursor is at."""
    words: list[str] = []
    places = []
    for i, word in enumerate(broken):
        if i > 1 and (BREAKS.fullmatch(word) or BREAKS.fullmatch(broken[i - 1])):
            words[-1] += word
        else:
            words.append(word)
        places.append(len(words) - 1)
    return words, places[place] if place < len(places) else len(words)


def inserted_already(typed: str) -> str:
    """The part of a value up to its last break, which stands on the command line."""
    value = typed.partition("=")[2] if typed.startswith("-") else typed
    return value[: max((found.end() for found in BREAKS.finditer(value)), default=0)]
