"""`c4 runs`."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from itertools import chain
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from c4.cli.complete import run_folders
from c4.cli.options import ANY_PLACE, JsonOption, RunsOption
from c4.cli.output import say, say_json, show
from c4.cli.progress import progress, status
from c4.cli.tables import new_table, not_gradable_note, percent
from c4.cli.watch import watch_runs
from c4.errors import ConfigError, RunError
from c4.errors.text import counted

if TYPE_CHECKING:
    from c4.store.check import Finding
    from c4.store.merge import Merged
    from c4.store.summary import RunSummary


HELP = """List the runs below a folder, check them, repair one, or join two halves of one.

--check reads every file that a number comes from, timings and calibrations included, names what is
damaged, missing or of another run, and lists what killed processes left and what c4 did not write.
--repair rebuilds a missing or damaged manifest from a run's parts and touches nothing else.
--merge brings the trajectories and grades of the runs below another folder into --runs. Both must
be halves of the same run, the source stays as it is, and a killed merge can be repeated.
--watch waits until a worker records below the folder, on any machine, and shows the progress of the
runs until no worker is left.

Examples:

    c4 runs --check

    c4 runs --repair runs/model=tiny/task=math/method=baseline

    c4 runs --merge other-machine/runs --runs runs

    c4 runs --watch
"""


def runs_command(
    root: RunsOption = Path("runs"),
    check: Annotated[bool, typer.Option("--check", help="Read every file and verify it.")] = False,
    repair: Annotated[
        PurePath | None,
        typer.Option(
            **ANY_PLACE,
            help="Folder of one run whose manifest is to be rebuilt.",
            autocompletion=run_folders,
        ),
    ] = None,
    merge: Annotated[
        list[PurePath] | None,
        typer.Option(
            **ANY_PLACE, help="Folder of runs to be brought into --runs; may be repeated."
        ),
    ] = None,
    watch: Annotated[
        bool, typer.Option("--watch", help="Show who works on runs, and how far they are.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    if sum([check, repair is not None, bool(merge), watch]) > 1:
        raise ConfigError("give one of --check, --repair, --merge and --watch at a time")
    if repair is not None:
        repair_folder(repair, as_json=as_json)
    elif merge:
        merge_folders(merge, root, as_json=as_json)
    elif check:
        check_folder(root, as_json=as_json)
    elif watch:
        watch_runs(root, as_json=as_json)
    else:
        list_runs(root, as_json=as_json)


def list_runs(root: PurePath, *, as_json: bool) -> None:
    """Print one line per run; fail at the end if a run could not be read."""
    from c4.store.claims import read_aside
    from c4.store.runs import find_runs
    from c4.store.summary import summarise

    summaries, errors = [], []
    folders = find_runs(root)
    if not folders and not as_json:
        raise RunError(f"no runs below {root}; make one with: c4 record --task math")
    for folder in folders:
        try:
            summaries.append(summarise(folder))
        except RunError as error:
            errors.append(str(error))
    if as_json:
        say_json([asdict(summary) for summary in summaries])
    else:
        if summaries:
            show(render(summaries))
        if note := not_gradable_note({str(s.folder): s.not_gradable for s in summaries}):
            say(f"{note} (c4 grade tries them again)")
        for summary in summaries:
            for number, why in read_aside(summary.folder).items():
                say(f"{summary.folder}: example {number} is set aside: {why}")
    if errors:
        raise RunError("\n".join(dict.fromkeys(errors)))


def repair_folder(folder: PurePath, *, as_json: bool) -> None:
    """Rebuild a run's manifest, and report the problems that remain."""
    from c4.store.repair import repair_run

    repair = repair_run(folder)
    if as_json:
        say_json(asdict(repair))
    else:
        say("\n".join(repair.done) or f"{folder}: its manifest needs no repair")
    if repair.remaining:
        raise RunError("\n".join(repair.remaining))


def merge_folders(sources: Sequence[PurePath], root: PurePath, *, as_json: bool) -> None:
    """Merge the runs below each source into `root`, after comparing all runs of the source."""
    from c4.store.merge import plan_merge

    merged = []
    for source in sources:
        with status(f"comparing {source} with {root}"):
            merges = plan_merge(source, root)
        with progress(f"merging {source} into {root}", total=len(merges)) as advance:
            for merge in merges:
                merged.append(merge.run())
                advance()
    show_merged(merged, as_json=as_json)


def show_merged(merged: "Sequence[Merged]", *, as_json: bool) -> None:
    """Print how many trajectories each run gained."""
    if as_json:
        say_json([asdict(one) for one in merged])
        return
    for one in merged:
        there = f"{one.known} were there already" if one.known else "none were there"
        say(f"{one.folder}: {counted(one.added, 'trajectory')} added, {there}")


def check_folder(root: PurePath, *, as_json: bool) -> None:
    """Check every file, and raise an error that lists the problems."""
    from c4.store.check import State
    from c4.store.runs import find_runs, refuse_file
    from c4.store.storage import folder_exists

    refuse_file(root)
    if not folder_exists(root):
        raise RunError(f"{root}: no such folder")
    folders = find_runs(root)
    found = check_files(root, folders)
    if not found:
        raise RunError(f"nothing to check below {root}; make a run with: c4 record --task math")
    named = {state: [f.what for f in found if f.state is state] for state in State}
    if as_json:
        listed = {str(state): named[state] for state in State if state is not State.SOUND}
        say_json({"runs": len(folders), "files": len(found), **listed})
    else:
        for what in (*named[State.LEFTOVER], *named[State.FOREIGN]):
            say(what)
        if not named[State.PROBLEM]:
            files, runs = len(named[State.SOUND]), len(folders)
            say(f"no damage in {counted(files, 'file')} of {counted(runs, 'run')}")
    if named[State.PROBLEM]:
        raise RunError("\n".join(named[State.PROBLEM]))


def check_files(root: PurePath, folders: Sequence[PurePath]) -> "list[Finding]":
    """Return a finding for every file of runs, timings and calibrations."""
    from c4.gates.calibration_files import check_calibration, find_calibrations
    from c4.store.check import Finding, State, check_run, check_timings, run_files, timing_paths
    from c4.store.locations import resolve_location

    places = dict.fromkeys([resolve_location(root), Path.cwd()])
    beside = [path for folder in places for path in find_calibrations(folder)]
    total = sum(len(run_files(folder)) for folder in folders)
    total += len(timing_paths(root)) + len(beside)

    def calibrations() -> "Iterator[Finding]":
        for path in beside:
            error = check_calibration(path)
            yield Finding(path, State.PROBLEM, str(error)) if error else Finding(path)

    found = []
    with progress(f"checking {root}", total=total) as advance:
        for finding in chain(*map(check_run, folders), check_timings(root), calibrations()):
            found.append(finding)
            advance(finding.path.name)
    return found


def render(summaries: "list[RunSummary]") -> Table:
    table = new_table(
        *("model", "task", "method", "source", "n", "graded", "accuracy", "steps", "bytes"),
        "folder",
    )
    for s in summaries:
        counts = (str(s.n), str(s.graded), percent(s.accuracy), f"{s.steps:.1f}", f"{s.bytes:,}")
        table.add_row(s.model, s.task, s.method, s.source, *counts, str(s.folder))
    return table
