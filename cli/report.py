"""`c4 report`."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from c4.cli.complete import listed_names, offer
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
from c4.cli.options import UnsafeOption
from c4.cli.output import say
from c4.cli.places import ANY_PLACE, nothing_found
from c4.cli.progress import status
from c4.cli.reading import EndingOption, GraderOption, ReadingOption, choose_reading
from c4.store.locations import Location

HELP = """Print the paper's tables from the runs on disk.

Names: main, ablation, paired, stabilization, scaling, calibration; all of them are printed if none
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

TableNames = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[NAME]...",
        help="Tables to print. [default: all]",
        autocompletion=offer(lambda: listed_names(HELP)),
    ),
]


def report_command(
    names: TableNames = None,
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
    task: TaskOption = None,
    model: ModelOption = None,
    method: ShownMethodsOption = None,
    gate: ComparedOption = None,
    settings: BesideOption = None,
    config: ConfigsOption = None,
    everything: Annotated[
        bool, typer.Option("--all", help="Also list methods that were not run, as dashes.")
    ] = False,
    calibration: Annotated[
        list[Location] | None,
        typer.Option(
            **ANY_PLACE,
            help="A file of `c4 calibrate`. [default: those in the current folder and in --runs]",
        ),
    ] = None,
    reading: ReadingOption = None,
    ending: EndingOption = None,
    grader: GraderOption = None,
    unsafe_code: UnsafeOption = False,
    as_json: Annotated[bool, typer.Option("--json", help="Same as --format json.")] = False,
) -> None:
    from c4.analysis import TableFormat, make_report, render_tables
    from c4.analysis.exchange.imports import library_kind
    from c4.analysis.names import listed_in
    from c4.analysis.tables import REPORT_GATES

    with status("looking for recordings") as note:
        library = library_kind(runs, names)(
            runs,
            tasks=task,
            model=model,
            gates=compared_gates(gate or REPORT_GATES, settings, config),
            methods=method,
            calibrations=calibration,
            reading=choose_reading(reading, ending, grader, one_config(config)),
            unsafe_code=unsafe_code,
            note=note,
        )
        if not library.runs and library.settling.is_empty():
            raise nothing_found(runs, f"nothing below {runs} to report")
        with listed_in(library.tasks, [*(method or ()), *(gate or ())]):
            paper = against == "paper"
            tables = make_report(names or ["all"], library, paper=paper, everything=everything)
    if not library.runs:
        tables = [table for table in tables if table.rows.height]
    say(render_tables(tables, TableFormat("json" if as_json else form)))
