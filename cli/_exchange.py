"""`c4 import` and `c4 export`: trajectories of others, and what others want of ours."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer
from rich.table import Table

from c4.cli._decode import JsonOption
from c4.cli._output import say, say_json, show
from c4.cli._progress import progress
from c4.cli._tables import new_table, percent
from c4.errors.system import require_writable_file

if TYPE_CHECKING:
    import polars as pl

IMPORT_HELP = """Read the trajectories that other projects publish: when did their answers settle?

Files are read and never run: a `.pt` file is a pickle, and one that asks for anything but tensors
is refused by name. Gates cannot be asked about them, because the confidences of all positions are
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
"""


def import_command(
    source: Annotated[Literal["prophet", "klass"], typer.Argument(help="Whose files these are.")],
    folder: Annotated[Path, typer.Argument(help="Folder with the files, at any depth.")],
    task: Annotated[
        str | None,
        typer.Option(help="Whose answers these are. [default: as a folder is called, or gsm8k]"),
    ] = None,
    budget: Annotated[
        int | None,
        typer.Option(min=1, help="Steps of the full decode. [default: as file or folder say]"),
    ] = None,
    out: Annotated[
        Path, typer.Option(help="Parquet file to write, one row per trajectory.")
    ] = Path("imported.parquet"),
    figure: Annotated[
        Path | None, typer.Option(help="Also draw when answers settle, as PDF, PNG or SVG.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    from c4.exchange.imported import (
        NO_GATES,
        Source,
        import_trajectories,
        plan_import,
        summarise_imported,
    )

    for file in filter(None, (out, figure)):
        require_writable_file(file)
    plan = plan_import(Source(source), folder, task, budget)
    with progress(f"reading {folder}", total=len(plan.files)) as advance:
        imported = import_trajectories(plan, advance)
    imported.write_parquet(out)
    if figure is not None:
        draw(imported, figure)
    summary = summarise_imported(imported)
    if as_json:
        say_json({"out": str(out), "summary": summary.to_dicts()})
        return
    show(render(summary))
    say(f"{imported.height} trajectories of {plan.task} -> {out}\n{NO_GATES}")


def draw(imported: "pl.DataFrame", path: Path) -> None:
    """Draw when imported answers settled."""
    from c4.figures import save_figure, stabilization_figure

    save_figure(stabilization_figure(imported), path)


def render(summary: "pl.DataFrame") -> Table:
    """When half and nine in ten answers had settled, and were first shown."""
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
    run: Annotated[Path, typer.Argument(help="Folder of one run.")],
    kind: Annotated[
        Literal["steps"], typer.Option("--format", help="What to write: steps, the step maps.")
    ] = "steps",
    out: Annotated[Path, typer.Option(help="File of JSON lines to write.")] = Path("steps.jsonl"),
    as_json: JsonOption = False,
) -> None:
    from c4.exchange.steps import export_steps
    from c4.store import open_run

    require_writable_file(out)
    opened = open_run(run)
    with progress(f"writing {out}", total=len(opened)) as advance:
        count = export_steps(opened, out, advance)
    if as_json:
        say_json({"format": kind, "trajectories": count, "out": str(out)})
    else:
        say(f"step maps of {count} trajectories -> {out}")
