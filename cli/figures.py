"""`c4 figures`."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from c4.cli.complete import complete_signal, offer
from c4.cli.options import (
    LOCAL_PLACE,
    ComparisonOptions,
    JsonOption,
    RunsOption,
    nothing_found,
    takes_options,
)
from c4.cli.output import say, say_json, show
from c4.cli.progress import status

if TYPE_CHECKING:
    from c4.figures.gallery import Drawing, FigureKind

NAMES = (
    *("stabilization", "phase-diagram", "gates", "trace", "text", "blocks", "totals"),
    *("time-share", "h-sweep", "frontier"),
)
HELP = f"""Draw figures from the runs on disk, and write the data of each beside it as CSV.

Names: {", ".join(NAMES)};
all of them are drawn if none is given. A figure whose data is missing is skipped, and a message
names the command that would produce the data. Panels and methods come in the order in which you
name tasks, gates and methods.

Examples:

    c4 figures

    c4 figures phase-diagram --runs runs --task mmlu --task math --out figures-out

    c4 figures stabilization --format svg --width column

    c4 figures text --task gsm8k --trajectory 41

    c4 figures trace --task math --signal entropy --signal my_signals.py:flux

    c4 figures phase-diagram --gate cvee --set tau=0.8 --config calibration.json
"""


@dataclass(frozen=True, kw_only=True)
class DrawingOptions:
    """Look of the figures, and the trajectory and signals that some of them show."""

    formats: Annotated[
        list[str] | None,
        typer.Option(
            "--format",
            autocompletion=offer(lambda: ["pdf", "png", "svg"]),
            help="pdf, png or svg; may be given several times. [default: pdf and png]",
        ),
    ] = None
    width: Annotated[
        Literal["column", "page"] | None,
        typer.Option(
            help="Width in a paper with two columns. [default: as wide as the panels need, at "
            "most a page]"
        ),
    ] = None
    trajectory: Annotated[
        int | None,
        typer.Option(
            help="Number of the trajectory in trace and text. [default: one that CVEE stops "
            "early and rightly]"
        ),
    ] = None
    signal: Annotated[
        list[str] | None,
        typer.Option(
            "--signal",
            autocompletion=complete_signal,
            help="A signal to show in trace in a panel of its own: one that gates see, such as "
            "entropy, or one of your own, whose code is run: my_signals.py:flux. May be given "
            "several times.",
        ),
    ] = None
    style: Annotated[
        Path | None,
        typer.Option(
            **LOCAL_PLACE, help="A Matplotlib style file (.mplstyle) over c4's own settings."
        ),
    ] = None


@takes_options()
def figures_command(
    *,
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[NAME]...",
            help="Figures to draw. [default: all]",
            autocompletion=offer(lambda: NAMES),
        ),
    ] = None,
    runs: RunsOption = Path("runs"),
    out: Annotated[Path, typer.Option(**LOCAL_PLACE, help="Folder for the figures.")] = Path(
        "figures-out"
    ),
    drawing: DrawingOptions,
    compared: ComparisonOptions,
    as_json: JsonOption = False,
) -> None:
    from c4.analysis.cohorts import pool_note
    from c4.analysis.library import COMPARED_GATES
    from c4.figures import Width, draw_figures
    from c4.figures.gallery import choose_figures, choose_formats
    from c4.figures.style import read_style, use_style

    look = read_style(drawing.style) if drawing.style else {}
    kinds = choose_figures(names or ["all"])
    files = choose_formats(drawing.formats or ["pdf", "png"])
    width = Width(drawing.width) if drawing.width else None
    shown = {"trajectory": drawing.trajectory, "signals": drawing.signal or ()}
    with (
        status("looking for recordings") as note,
        compared.library(runs, names, COMPARED_GATES, note=note, **shown) as library,
        use_style(look),
    ):
        drawings = draw_figures(kinds, library, out, files, note, width)
    if drawings or not as_json:
        tell(drawings, kinds, pool_note(library.cohorts.filter("main")), as_json=as_json)
    if not drawings:
        raise nothing_found(runs, "draw from")


def tell(
    drawings: "Sequence[Drawing]", asked: "Sequence[FigureKind]", pool: str, *, as_json: bool
) -> None:
    """Print the written files, the examples left out, and the commands for skipped figures.

    Decoded texts are printed as well, unless all figures were requested.
    """
    from c4.figures import FIGURES
    from c4.figures.text import terminal_texts

    drawn = {one.figure_kind.name: [*map(str, one.files), str(one.data)] for one in drawings}
    skipped = {kind.name: kind.needs for kind in asked if kind.name not in drawn}
    if as_json:
        say_json({"drawn": drawn, "skipped": skipped})
        return
    for one in drawings:
        if one.figure_kind.name == "text" and len(asked) < len(FIGURES):
            show(terminal_texts(one.frame))
    for name, written in drawn.items():
        say(f"{name}: {', '.join(written)}")
    if drawn and pool:
        say(pool)
    for name, needs in skipped.items():
        say(f"{name}: skipped, there is no data for it; make it with: {needs}", err=True)
