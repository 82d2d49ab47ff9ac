"""`c4 report`."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from c4.cli.complete import offer
from c4.cli.options import ComparisonOptions, RunsOption, nothing_found, takes_options
from c4.cli.output import say
from c4.cli.progress import status

TABLES = ("main", "ablation", "paired", "stabilization", "scaling", "calibration")
HELP = f"""Print the paper's tables from the runs on disk.

Names: {", ".join(TABLES)}; all of them are printed if none
is given. Gates are replayed over recordings; samplers appear once `c4 run` has run them, and speeds
once `c4 bench` has measured them. Variants such as a calibrated `c4` have a row beside their
method; --set and --config add settings of gates. Tasks, methods and gates are listed in the order
in which you name them. The points of a sweep (C4 with nothing but another H, and WINO with CVEE in
other settings) are only named. A missing number is shown as a dash, and a note says what is missing
and how to make it.

Examples:

    c4 report main

    c4 report main paired --against paper --format latex

    c4 report --runs runs --task gsm8k --format json

    c4 report main --config calibration.json --set cvee.tau=0.8
"""


@takes_options()
def report_command(
    *,
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[NAME]...",
            help="Tables to print. [default: all]",
            autocompletion=offer(lambda: TABLES),
        ),
    ] = None,
    runs: RunsOption = Path("runs"),
    form: Annotated[
        Literal["markdown", "latex", "csv", "json"],
        typer.Option("--format", help="Format of the tables."),
    ] = "markdown",
    against: Annotated[
        Literal["paper"] | None,
        typer.Option(
            help="Put the published numbers beside yours where model, data and shape match."
        ),
    ] = None,
    everything: Annotated[
        bool, typer.Option("--all", help="Also list methods that were not run, as dashes.")
    ] = False,
    compared: ComparisonOptions,
    as_json: Annotated[bool, typer.Option("--json", help="Same as --format json.")] = False,
) -> None:
    from c4.analysis import TableFormat, make_report, render_tables
    from c4.analysis.tables import REPORT_GATES

    with (
        status("looking for recordings") as note,
        compared.library(runs, names, REPORT_GATES, note=note) as library,
    ):
        if not library.runs and library.settling.is_empty():
            raise nothing_found(runs, "report")
        paper = against == "paper"
        tables = make_report(names or ["all"], library, paper=paper, everything=everything)
    if not library.runs:
        tables = [table for table in tables if table.rows.height]
    say(render_tables(tables, TableFormat("json" if as_json else form)))
