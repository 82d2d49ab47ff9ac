"""`c4 runs`."""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from c4.cli._output import say, say_json, show
from c4.cli._progress import progress
from c4.cli._tables import new_table, not_gradable_note, percent
from c4.errors import C4Error, RunError

if TYPE_CHECKING:
    from c4.store.summary import RunSummary


def runs_command(
    root: Annotated[Path, typer.Option("--runs", help="Folder that holds all runs.")] = Path(
        "runs"
    ),
    check: Annotated[bool, typer.Option("--check", help="Read every file and verify it.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print as JSON.")] = False,
) -> None:
    """List the runs below a folder; with --check, verify every byte that a number comes from."""
    from c4.store.runs import find_runs
    from c4.store.summary import summarise

    folders = find_runs(root)
    if not folders and not as_json:
        raise RunError(f"no runs below {root}; make one with: c4 record --task math")
    errors = check_files(root, folders) if check else []
    summaries = []
    for folder in folders:
        try:
            summaries.append(summarise(folder))
        except RunError as error:
            errors.append(str(error))
    if as_json:
        say_json([asdict(summary) for summary in summaries])
    else:
        show(render(summaries))
        if note := not_gradable_note({str(s.folder): s.not_gradable for s in summaries}):
            say(f"{note} (c4 grade tries them again)")
        if check and not errors:
            say(f"every file of {len(folders)} runs is sound")
    if errors:
        raise RunError("\n".join(dict.fromkeys(errors)))


def check_files(root: Path, folders: Sequence[Path]) -> list[str]:
    """What is wrong with runs, timings and calibrations, by name."""
    from c4.replay.calibration import check_calibrations
    from c4.store.check import check_run, check_timings, run_files

    found: list[str] = []
    total = sum(len(run_files(folder)) for folder in folders)
    with progress(f"checking {root}", total=total) as advance:
        for folder in folders:
            for problem in check_run(folder):
                found += [str(problem)] if problem else []
                advance()
    others: list[C4Error | None] = [*check_timings(root), *check_calibrations(root)]
    return found + [str(problem) for problem in others if problem]


def render(summaries: "list[RunSummary]") -> Table:
    columns = (
        "model",
        "task",
        "method",
        "source",
        "n",
        "graded",
        "accuracy",
        "steps",
        "bytes",
        "folder",
    )
    table = new_table(*columns)
    for s in summaries:
        counts = (str(s.n), str(s.graded), percent(s.accuracy), f"{s.steps:g}", f"{s.bytes:,}")
        table.add_row(s.model, s.task, s.method, s.source, *counts, str(s.folder))
    return table
