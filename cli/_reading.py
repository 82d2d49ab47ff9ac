"""How answers are read: the options that every command with signals or grades shares."""

from pathlib import Path
from typing import Annotated

import typer

from c4.tasks import AnswerReading, Ending, ReadingStyle

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


def choose_reading(
    style: ReadingStyle | None, ending: Ending | None, config: Path | None = None
) -> AnswerReading:
    """The reading a user asks for, a calibration was made under, or the default."""
    if config is None:
        return AnswerReading(style or USUAL.style, ending or USUAL.ending)
    from c4.replay import load_calibration

    frozen = load_calibration(config)
    chosen = AnswerReading(style or frozen.reading.style, ending or frozen.reading.ending)
    frozen.check_reading(chosen)
    return chosen


def reading_note(reading: AnswerReading) -> str | None:
    """What to say below a table that is not of the default reading."""
    if reading == USUAL:
        return None
    return f"answers are read under --reading {reading.style} --ending {reading.ending}"
