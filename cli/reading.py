"""How answers are read: the options that every command with signals or grades shares."""

from typing import Annotated

import typer

from c4.cli.complete import complete_grader, complete_reading
from c4.store.locations import Location
from c4.tasks import AnswerReading, Ending
from c4.tasks.extractors import find_style
from c4.tasks.graders import find_grader

USUAL = AnswerReading()
ReadingOption = Annotated[
    str | None,
    typer.Option(
        "--reading",
        metavar="NAME",
        autocompletion=complete_reading,
        help="How answers are found: careful knows the example's choices and how models write "
        "answers; plain is the paper's way; number, boxed, letter or function look for that kind "
        "of answer; or an extractor of your own, which is run: my_extractors.py:total. "
        f"[default: {USUAL.style}, or as in --config]",
    ),
]
EndingOption = Annotated[
    Ending | None,
    typer.Option(
        "--ending",
        help="What counts after the first end token: nothing (cut), or everything except special "
        f"tokens (skip), as in the authors' release. [default: {USUAL.ending}, or as in --config]",
    ),
]
GraderOption = Annotated[
    str | None,
    typer.Option(
        "--grader",
        autocompletion=complete_grader,
        help="How to grade an answer whose form differs from the gold answer's: as wrong (exact), "
        "or by asking a computer algebra system (math-verify; needs "
        "pip install 'c4-dlm[math]'); or a function of your own, which is run: my_graders.py:near. "
        f"[default: {USUAL.grader}, or as in --config]",
    ),
]


def choose_reading(
    style: str | None,
    ending: Ending | None,
    grader: str | None = None,
    config: Location | None = None,
) -> AnswerReading:
    """The reading that a user asks for, or that of a calibration, or the default."""
    if config is None:
        usual = USUAL
    else:
        from c4.gates.calibrations import load_calibration

        frozen = load_calibration(config)
        usual = frozen.reading
    read = find_style(style) if style else usual.style
    graded = find_grader(grader) if grader else usual.grader
    chosen = AnswerReading(read, ending or usual.ending, graded)
    if config is not None:
        frozen.check_reading(chosen)
    return chosen


def reading_note(reading: AnswerReading) -> str | None:
    """The note below a table whose answers are not read in the default way, else None."""
    if reading == USUAL:
        return None
    return f"answers are read under {reading.options}"
