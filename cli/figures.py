"""`c4 figures`."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from c4.cli.complete import complete_signal, listed_names, offer
from c4.cli.gates import (
    BesideOption,
    ComparedOption,
    ConfigsOption,
    ModelOption,
    RunsOption,
    ShownMethodsOption,
    TaskOption,
    compared_gates,
    one_config,
)
from c4.cli.options import JsonOption, UnsafeOption
from c4.cli.output import say, say_json, show
from c4.cli.places import ANY_PLACE, LOCAL_PLACE, nothing_found
from c4.cli.progress import status
from c4.cli.reading import EndingOption, GraderOption, ReadingOption, choose_reading
from c4.store.locations import Location

if TYPE_CHECKING:
    from c4.figures.gallery import Drawing, FigureKind

HELP = """Draw figures from the runs on disk, and write the data of each beside it as CSV.

Names: stabilization, phase-diagram, gates, trace, text, blocks, totals, time-share, h-sweep,
frontier; all of them are drawn if none is given. A figure whose data is missing is skipped, and a
message names the command that would produce the data. Panels and methods come in the order in which
you name tasks, gates and methods.

Examples:

    c4 figures

    c4 figures phase-diagram --runs runs --task mmlu --task math --out figures-out

    c4 figures stabilization --format svg --width column

    c4 figures text --task gsm8k --trajectory 41

    c4 figures trace --task math --signal entropy --signal my_signals.py:flux

    c4 figures phase-diagram --gate cvee --set tau=0.8 --config calibration.json --title "Exits"
"""


FormatOption = Annotated[
    list[str] | None,
    typer.Option(
        "--format",
        autocompletion=offer(lambda: ["pdf", "png", "svg"]),
        help="pdf, png or svg; may be given several times. [default: pdf and png]",
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
SignalOption = Annotated[
    list[str] | None,
    typer.Option(
        "--signal",
        autocompletion=complete_signal,
        help="A signal to show in trace in a panel of its own: one that gates see, such as "
        "entropy, or one of your own, whose code is run: my_signals.py:flux. May be given several "
        "times.",
    ),
]
StyleOption = Annotated[
    Path | None,
    typer.Option(**LOCAL_PLACE, help="A Matplotlib style file (.mplstyle) over c4's own settings."),
]
TitleOption = Annotated[str | None, typer.Option(help="A title above every figure but text.")]
ColumnsOption = Annotated[
    int | None, typer.Option(min=1, max=8, help="Number of panels side by side.")
]
CalibrationsOption = Annotated[
    list[Location] | None,
    typer.Option(
        **ANY_PLACE,
        help="A file of `c4 calibrate`, besides those in the current folder and in --runs.",
    ),
]
FigureNames = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[NAME]...",
        help="Figures to draw. [default: all]",
        autocompletion=offer(lambda: listed_names(HELP)),
    ),
]


def figures_command(
    names: FigureNames = None,
    runs: RunsOption = Path("runs"),
    out: Annotated[Path, typer.Option(**LOCAL_PLACE, help="Folder for the figures.")] = Path(
        "figures-out"
    ),
    formats: FormatOption = None,
    width: WidthOption = None,
    task: TaskOption = None,
    model: ModelOption = None,
    trajectory: TrajectoryOption = None,
    signal: SignalOption = None,
    gate: ComparedOption = None,
    settings: BesideOption = None,
    config: ConfigsOption = None,
    method: ShownMethodsOption = None,
    style: StyleOption = None,
    title: TitleOption = None,
    columns: ColumnsOption = None,
    calibration: CalibrationsOption = None,
    reading: ReadingOption = None,
    ending: EndingOption = None,
    grader: GraderOption = None,
    unsafe_code: UnsafeOption = False,
    as_json: JsonOption = False,
) -> None:
    from c4.analysis.cohorts import pool_note
    from c4.analysis.exchange.imports import library_kind
    from c4.analysis.library import COMPARED_GATES
    from c4.analysis.names import listed_in
    from c4.figures import Width, draw_figures
    from c4.figures.gallery import choose_figures, choose_formats
    from c4.figures.style import Look, looking, read_style

    look = Look(read_style(style) if style else {}, title, columns)
    figure_kinds = choose_figures(names or ["all"])
    kinds = choose_formats(formats or ["pdf", "png"])
    read_as = choose_reading(reading, ending, grader, one_config(config))
    with status("looking for recordings") as note:
        library = library_kind(runs, names)(
            runs,
            tasks=task,
            model=model,
            reading=read_as,
            unsafe_code=unsafe_code,
            note=note,
            trajectory=trajectory,
            signals=signal or (),
            gates=compared_gates(gate or COMPARED_GATES, settings, config),
            methods=method,
            calibrations=calibration,
        )
        with listed_in(library.tasks, [*(method or ()), *(gate or ())]), looking(look):
            size = Width(width) if width else None
            drawings = draw_figures(figure_kinds, library, out, kinds, note, size)
    if drawings or not as_json:
        tell(drawings, figure_kinds, pool_note(library.cohorts.filter("main")), as_json=as_json)
    if not drawings:
        raise nothing_found(runs, f"nothing below {runs} to draw from")


def tell(
    drawings: "Sequence[Drawing]", asked: "Sequence[FigureKind]", pool: str, *, as_json: bool
) -> None:
    """Print what was drawn, and what was not and how to make its data.

    Texts are printed as well, unless every figure was asked for.
    """
    from c4.figures import FIGURES

    drawn = drawn_files(drawings)
    skipped = {kind.name: kind.needs for kind in asked if kind.name not in drawn}
    if as_json:
        say_json({"drawn": drawn, "skipped": skipped})
    else:
        if len(asked) < len(FIGURES):
            show_texts(drawings)
        show_files(drawn, skipped, pool)


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
