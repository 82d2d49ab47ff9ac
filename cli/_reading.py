"""How answers are read: the options that every command with signals or grades shares."""

from pathlib import Path
from typing import Annotated

import typer

from c4.tasks import AnswerReading, Ending, Grader, ReadingStyle

USUAL = AnswerReading()
ReadingOption = Annotated[
    ReadingStyle | None,
    typer.Option(
        "--reading",
        help="How answers are found: careful knows the example's choices and how models write "
        f"answers, plain is the paper's. [default: {USUAL.style}, or that of --config]",
    ),
]
EndingOption = Annotated[
    Ending | None,
    typer.Option(
        "--ending",
        help="What counts behind the first end token: nothing (cut), or all but special tokens "
        f"(skip), as in the authors' release. [default: {USUAL.ending}, or that of --config]",
    ),
]


GraderOption = Annotated[
    Grader | None,
    typer.Option(
        "--grader",
        help="Who is asked where an answer is not written as the gold one is: nobody (exact), or a "
        "computer algebra system (math-verify; needs pip install 'c4-dlm[math]'). "
        f"[default: {USUAL.grader}, or that of --config]",
    ),
]


def choose_reading(
    style: ReadingStyle | None,
    ending: Ending | None,
    grader: Grader | None = None,
    config: Path | None = None,
) -> AnswerReading:
    """The reading a user asks for, a calibration was made under, or the default."""
    if config is None:
        usual = USUAL
    else:
        from c4.replay.calibration import load_calibration

        frozen = load_calibration(config)
        usual = frozen.reading
    chosen = AnswerReading(style or usual.style, ending or usual.ending, grader or usual.grader)
    if config is not None:
        frozen.check_reading(chosen)
    return chosen


def reading_note(reading: AnswerReading) -> str | None:
    """What to say below a table that is not of the default reading."""
    if reading == USUAL:
        return None
    return (
        f"answers are read under --reading {reading.style} --ending {reading.ending} "
        f"--grader {reading.grader}"
    )
