"""`c4 import`, `export`, `push` and `pull`: exchange with other programs and the hub."""

import io
from dataclasses import asdict
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Annotated, Literal

import typer
from rich.table import Table

from c4.cli.complete import complete_task, run_folders
from c4.cli.options import (
    ANY_PLACE,
    LOCAL_PLACE,
    JsonOption,
    OutRunsOption,
    RunArgument,
)
from c4.cli.output import say, say_json, show
from c4.cli.progress import progress, status
from c4.cli.runs import show_merged
from c4.cli.tables import new_table, percent
from c4.errors.text import counted

if TYPE_CHECKING:
    import polars as pl

IMPORT_HELP = """Read the trajectories that other projects publish: when did their answers settle?

Nothing of a file is run: a `.pt` file that holds more than tensors, lists, texts and numbers is
refused by name. Gates cannot be replayed over them, because the confidences of all positions are
not in the files. The result is a Parquet file with one row per trajectory.

Examples:

    c4 import prophet question_histories_low_confidence_none_index_genlen_step256_blocklen32

    c4 import klass results/LLaDA/gsm8k --task gsm8k --figure stabilization.pdf
"""
EXPORT_HELP = """Write the step at which each token of a run was unmasked, for other programs.

One JSON object per line and trajectory; its `step_map` is the list that SGLang returns as
`step_maps` and LMDeploy as `step_map`. docs/exchange.md says what each key holds.

Examples:

    c4 export runs/model=tiny/task=math/method=baseline --out steps.jsonl

    c4 export runs/model=tiny/task=math/method=c4 --out - | head -n 1
"""
STDOUT = Path("-")


def import_command(
    source: Annotated[
        Literal["prophet", "klass"], typer.Argument(help="Project that published the files.")
    ],
    folder: Annotated[
        Path, typer.Argument(**LOCAL_PLACE, help="Folder with the files, at any depth.")
    ],
    task: Annotated[
        str | None,
        typer.Option(
            autocompletion=complete_task,
            help="Task of the answers, which may be your own. [default: as a folder is called, or "
            "gsm8k]",
        ),
    ] = None,
    budget: Annotated[
        int | None,
        typer.Option(
            min=1, help="Steps of the full decode. [default: from the names of files or folders]"
        ),
    ] = None,
    out: Annotated[
        PurePath,
        typer.Option(**ANY_PLACE, help="Parquet file to write, one row per trajectory."),
    ] = Path("imported.parquet"),
    figure: Annotated[
        Path | None,
        typer.Option(**LOCAL_PLACE, help="Also draw when answers settle, as PDF, PNG or SVG."),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    from c4.analysis.exchange.imports import (
        NO_GATES,
        Source,
        import_trajectories,
        plan_import,
        summarise_imported,
    )
    from c4.store.storage import put_file, require_can_put

    for file in filter(None, (out, figure)):
        require_can_put(file)
    plan = plan_import(Source(source), folder, task, budget)
    with progress(f"reading {folder}", total=len(plan.files)) as advance:
        imported = import_trajectories(plan, advance)
    content = io.BytesIO()
    imported.write_parquet(content)
    put_file(out, content.getvalue())
    if figure is not None:
        from c4.figures import save_figure, stabilization_figure

        save_figure(stabilization_figure(imported), figure)
    summary = summarise_imported(imported)
    if as_json:
        say_json({"out": out, "figure": figure, "summary": summary.to_dicts()})
        return
    show(render(summary))
    tasks = ", ".join(imported["task"].unique(maintain_order=True))
    say(f"{imported.height} trajectories of {tasks} -> {out}\n{NO_GATES}")


def render(summary: "pl.DataFrame") -> Table:
    """Return a table of when half and nine tenths of the answers settled and first appeared."""
    table = new_table("from", "n", "accuracy", "steps", "share p", "settled (s_p)", "first shown")
    for row in summary.iter_rows(named=True):
        times = (
            "never" if row[name] is None else f"{row[name]:.2f}" for name in ("s_p", "appeared")
        )
        steps = f"{row['steps']:.1f} of {row['budget']}"
        share = f"{row['share']:.0%}"
        table.add_row(row["model"], str(row["n"]), percent(row["accuracy"]), steps, share, *times)
    return table


def export_command(
    run: RunArgument,
    kind: Annotated[
        Literal["steps"], typer.Option("--format", help="What to write: steps, the step maps.")
    ] = "steps",
    out: Annotated[
        PurePath,
        typer.Option(**ANY_PLACE, help="File of JSON lines to write; - prints them."),
    ] = Path("steps.jsonl"),
    as_json: JsonOption = False,
) -> None:
    from c4.analysis.exchange.export import export_steps, step_map
    from c4.store.runs import find_run, open_run
    from c4.store.storage import require_can_put

    opened = open_run(find_run(run))
    if out == STDOUT:
        for row in opened.rows():
            say_json(step_map(row))
        return
    require_can_put(out)
    with progress(f"writing {out}", total=len(opened)) as advance:
        count = export_steps(opened, out, advance)
    if as_json:
        say_json({"format": kind, "n": count, "out": out})
    else:
        say(f"step maps of {count} trajectories -> {out}")


PUSH_HELP = """Push a run, or all runs below a folder, to the hub as a data set with a card.

The card says what was recorded and with what, lists the columns, and tells how to replay. Runs are
checked first, and a damaged one is not pushed. Give the same command again after an interruption:
what the hub has is not sent twice. Files of the same run that overlap yours are replaced, so pull
first if somebody else may have added to them.

Examples:

    c4 push runs/model=tiny/task=math/method=baseline my-name/math-tiny

    c4 push runs my-name/all-my-runs --private
"""
PULL_HELP = """Pull runs from a data set on the hub into a folder of runs.

Every file is checked before anything is put in place, and nothing that is pulled is ever run. A
pull that was interrupted goes on where it was. If a run is there already, only the trajectories
that it lacks are added.

Examples:

    c4 pull my-name/math-tiny

    c4 pull my-name/math-tiny --out elsewhere --revision main
"""


def push_command(
    run: Annotated[
        PurePath,
        typer.Argument(
            **ANY_PLACE, help="Folder of a run, or of several.", autocompletion=run_folders
        ),
    ],
    repo: Annotated[str, typer.Argument(help="Data set on the hub: OWNER/NAME.")],
    private: Annotated[
        bool,
        typer.Option("--private", help="Make a new data set private; a public one is refused."),
    ] = False,
    as_json: JsonOption = False,
) -> None:
    from c4.analysis.exchange.hub import push_runs

    with status(f"pushing {run} to {repo}"):
        pushed = push_runs(run, repo, private=private)
    if as_json:
        say_json(asdict(pushed))
    else:
        what = f"{counted(len(pushed.runs), 'run')}, {counted(pushed.files, 'file')}"
        say(f"{what} -> {repo} (commit {pushed.commit[:12]})")


def pull_command(
    repo: Annotated[str, typer.Argument(help="Data set on the hub: OWNER/NAME.")],
    out: OutRunsOption = Path("runs"),
    revision: Annotated[
        str | None, typer.Option(help="Branch, tag or commit of the data set.")
    ] = None,
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Fetch everything anew, even what is in the cache.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    from c4.analysis.exchange.hub import pull_runs
    from c4.store.storage import require_writable

    require_writable(out)
    with status(f"pulling {repo}"):
        merged = pull_runs(repo, out, revision=revision, fresh=fresh)
    show_merged(merged, as_json=as_json)
