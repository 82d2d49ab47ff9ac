"""`c4 figures`."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from c4.cli._decode import JsonOption, UnsafeOption
from c4.cli._gates import ModelOption, RunsOption, TaskOption
from c4.cli._output import say, say_json, show
from c4.cli._places import ANY_PLACE, LOCAL_PLACE
from c4.cli._progress import status
from c4.cli._reading import EndingOption, GraderOption, ReadingOption, choose_reading
from c4.errors import RunError
from c4.store.locations import Location

if TYPE_CHECKING:
    from c4.figures.gallery import Drawing

HELP = """Draw figures from the runs on disk, and write the data of each beside it as CSV.

Names: stabilization, phase-diagram, gates, trace, text, blocks, totals, time-share, h-sweep,
frontier; all of them are drawn if none is given. A figure whose data is missing is skipped, and a
message names the command that would produce the data.

Examples:

    c4 figures

    c4 figures phase-diagram --runs runs --task mmlu --task math --out figures-out

    c4 figures stabilization --format svg --width column

    c4 figures text --task gsm8k --trajectory 41
"""


FormatOption = Annotated[
    list[str] | None,
    typer.Option(
        "--format", help="pdf, png or svg; may be given several times. [default: pdf and png]"
    ),
]
WidthOption = Annotated[
    Literal["column", "page"] | None,
    typer.Option(
        help="Width in a paper with two columns. [default: as wide as the panels need, at most a "
        "page]"
    ),
]
TrajectoryOption = Annotated[
    int | None,
    typer.Option(
        help="Number of the trajectory in trace and text. [default: one that CVEE stops early and "
        "rightly]"
    ),
]
ComparedOption = Annotated[
    list[str] | None,
    typer.Option("--gate", help="A gate to compare, as in `c4 replay`; may be repeated."),
]
CalibrationsOption = Annotated[
    list[Location] | None,
    typer.Option(
        **ANY_PLACE,
        help="A file of `c4 calibrate`, besides those in the current folder and in --runs.",
    ),
]


def figures_command(
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="[NAME]...", help="Figures to draw. [default: all]"),
    ] = None,
    runs: RunsOption = Path("runs"),
    out: Annotated[Path, typer.Option(**LOCAL_PLACE, help="Folder for the figures.")] = Path(
        "figures-out"
    ),
    formats: FormatOption = None,
    width: WidthOption = None,
    task: TaskOption = None,
    model: ModelOption = None,
    trajectory: TrajectoryOption = None,
    gate: ComparedOption = None,
    calibration: CalibrationsOption = None,
    reading: ReadingOption = None,
    ending: EndingOption = None,
    grader: GraderOption = None,
    unsafe_code: UnsafeOption = False,
    as_json: JsonOption = False,
) -> None:
    from c4.analysis import Library
    from c4.analysis.cohorts import pool_note
    from c4.analysis.library import COMPARED_GATES
    from c4.figures import Width, draw_figures
    from c4.figures.gallery import choose_figures, choose_formats

    figure_kinds = choose_figures(names or ["all"])
    kinds = choose_formats(formats or ["pdf", "png"])
    with status("looking for recordings") as note:
        library = Library(
            runs,
            tasks=task,
            model=model,
            reading=choose_reading(reading, ending, grader),
            unsafe_code=unsafe_code,
            note=note,
            trajectory=trajectory,
            gates=gate or COMPARED_GATES,
            calibrations=calibration,
        )
        drawings = draw_figures(
            figure_kinds, library, out, kinds, note, Width(width) if width else None
        )
    drawn = drawn_files(drawings)
    skipped = {x.name: x.needs for x in figure_kinds if x.name not in drawn}
    if as_json:
        say_json({"drawn": drawn, "skipped": skipped})
    else:
        if "text" in (names or []):
            show_texts(drawings)
        show_files(drawn, skipped, pool_note(library.cohorts.filter("main")))
    if not drawn:
        raise RunError(f"nothing below {runs} to draw from; start with: c4 record --task math")


def drawn_files(drawings: "Sequence[Drawing]") -> dict[str, list[str]]:
    """What was written for every figure, its data last."""
    return {one.figure_kind.name: [str(p) for p in (*one.files, one.data)] for one in drawings}


def show_texts(drawings: "Sequence[Drawing]") -> None:
    """Print the decoded texts to the terminal as well."""
    from c4.figures.text import terminal_texts

    for one in drawings:
        if one.figure_kind.name == "text":
            show(terminal_texts(one.frame))


def show_files(drawn: Mapping[str, list[str]], skipped: Mapping[str, str], pool: str) -> None:
    """Print which files were drawn, which examples they leave out, and how to draw the others."""
    for name, files in drawn.items():
        say(f"{name}: {', '.join(files)}")
    if drawn and pool:
        say(pool)
    for name, needs in skipped.items():
        say(f"{name}: skipped, there is no data for it; make it with: {needs}", err=True)
