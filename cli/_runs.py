"""`c4 runs`."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from c4.cli._progress import progress
from c4.cli._tables import new_table, show
from c4.errors import RunError

if TYPE_CHECKING:
    from c4.record import RunSummary


def runs_command(
    root: Annotated[Path, typer.Option("--runs", help="Folder of all recordings.")] = Path("runs"),
    check: Annotated[bool, typer.Option("--check", help="Read every file and verify it.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print as JSON.")] = False,
) -> None:
    """List the recordings below a folder; with --check, verify every byte of them."""
    from c4.record import find_runs, summarise

    folders = find_runs(root)
    if not folders and not as_json:
        raise RunError(f"no recordings below {root}; make one with: c4 record --task math")
    summaries, errors = [], []
    for folder in folders:
        try:
            if check:
                check_run(folder)
            summaries.append(summarise(folder))
        except RunError as error:
            errors.append(str(error))
    if as_json:
        typer.echo(json.dumps([asdict(summary) for summary in summaries], default=str))
    else:
        show(render(summaries))
        if check:
            typer.echo(f"every file of {len(summaries)} of {len(folders)} recordings is sound")
    if errors:
        raise RunError("\n".join(errors))


def check_run(folder: Path) -> None:
    """Read everything; the first damaged file is an error that names it."""
    from c4.record import open_run

    run = open_run(folder)
    run.text([])
    with progress(f"checking {run.model} {run.task}", total=len(run)) as advance:
        for _ in run:
            advance()


def render(summaries: "list[RunSummary]") -> Table:
    columns = ("model", "task", "source", "n", "graded", "accuracy", "steps", "bytes", "folder")
    table = new_table(*columns)
    for s in summaries:
        accuracy = "–" if s.accuracy is None else f"{s.accuracy:.1%}"
        counts = (str(s.trajectories), str(s.graded), accuracy, f"{s.steps:g}", f"{s.bytes:,}")
        table.add_row(s.model, s.task, s.source, *counts, str(s.folder))
    return table
