"""`c4 runs`."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from c4.cli._progress import progress
from c4.errors import RunError
from c4.record import find_runs, open_run, summarise


def runs_command(
    root: Annotated[Path, typer.Option("--runs", help="Folder of all recordings.")] = Path("runs"),
    check: Annotated[bool, typer.Option("--check", help="Read every file and verify it.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print as JSON.")] = False,
) -> None:
    """List the recordings below a folder; with --check, verify every byte of them."""
    folders = find_runs(root)
    if not folders:
        raise RunError(f"no recordings below {root}; make one with: c4 record --task math")
    if check:
        check_runs(folders)
    summaries = [summarise(folder) for folder in folders]
    if as_json:
        typer.echo(json.dumps([asdict(summary) for summary in summaries], default=str))
        return
    table = Table("model", "task", "source", "n", "accuracy", "steps", "bytes", "folder")
    for s in summaries:
        accuracy = "–" if s.accuracy is None else f"{s.accuracy:.1%}"
        cells = (s.model, s.task, s.source, str(s.trajectories), accuracy, f"{s.steps:g}")
        table.add_row(*cells, f"{s.bytes:,}", str(s.folder))
    Console().print(table)


def check_runs(folders: list[Path]) -> None:
    """Read everything; the first damaged file is an error that names it."""
    runs = [open_run(folder) for folder in folders]
    with progress("checking", total=sum(map(len, runs))) as advance:
        for run in runs:
            for _ in run:
                advance()
