"""`c4 replay`."""

from dataclasses import asdict
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from c4.cli.options import (
    ANY_PLACE,
    LOCAL_PLACE,
    GateOption,
    GateSettingsOption,
    JsonOption,
    ReadingOptions,
    RecordingOptions,
    UnsafeOption,
    choose_gates,
    takes_options,
)
from c4.cli.output import say, say_json, show
from c4.cli.progress import progress
from c4.cli.tables import new_table, not_gradable_note, percent, reading_note
from c4.errors.system import require_writable_file

if TYPE_CHECKING:
    import polars as pl

HELP = """Ask exit gates when they would have stopped, and what the answer would have been.

Nothing is decoded, and the result is exact: text and grade are those of the buffer after the final
fill at the exit step.

Examples:

    c4 replay --runs runs --gate cvee --gate prophet --gate sched

    c4 replay --task gsm8k --gate cvee --set tau=0.8 --set gamma=1

    c4 replay --gate my_gates:Calm --out decisions.parquet

    c4 replay --config calibration.json

    c4 replay --gate cvee --reading plain --ending skip
"""

NAMES = ("model", "task", "method", "gate", "split")
"""Columns that identify the trajectories and the gate of a row."""
SPLIT_NOTE = (
    "pool: trajectories used to choose this setting, so optimistic; "
    "held out: the other trajectories of that recording"
)


@takes_options()
def replay_command(
    *,
    recordings: RecordingOptions,
    gate: GateOption = None,
    settings: GateSettingsOption = None,
    config: Annotated[
        PurePath | None,
        typer.Option("--config", **ANY_PLACE, help="Use a setting that `c4 calibrate` froze."),
    ] = None,
    answers: ReadingOptions,
    out: Annotated[
        Path | None,
        typer.Option(**LOCAL_PLACE, help="Also write one row per trajectory and gate as Parquet."),
    ] = None,
    unsafe_code: UnsafeOption = False,
    as_json: JsonOption = False,
) -> None:
    import polars as pl

    from c4.gates.calibration_files import load_calibration
    from c4.replay.decisions import replay, summarise_decisions
    from c4.replay.pools import split_calibrated

    if out is not None:
        require_writable_file(out)
    configs = [] if config is None else [config]
    frozen = None if config is None else load_calibration(config)
    names = gate or ([] if config else ["cvee", "prophet", "sched"])
    reading = answers.choose(*configs)
    chosen = recordings.open(reading)
    gates = [choose_gates(names, settings, run.task, frozen) for run in chosen]
    frames = []
    with progress("replaying", total=sum(len(run.parts) for run in chosen)) as advance:
        for run, its_gates in zip(chosen, gates, strict=True):
            for frame in replay(run, its_gates, unsafe_code=unsafe_code):
                frames.append(split_calibrated(frame, frozen, run) if frozen else frame)
                advance(run.task_name)
    decisions = pl.concat(frames)
    if out is not None:
        decisions.write_parquet(out)
    summary = summarise_decisions(decisions)
    if as_json:
        facts = asdict(reading) | {"out": out}
        say_json([row | facts for row in summary.to_dicts()])
        return
    show(render(summary))
    failed = {
        " ".join(filter(None, map(row.get, NAMES))): row["not_gradable"]
        for row in summary.iter_rows(named=True)
    }
    notes = [not_gradable_note(failed), never_settle_note(summary)]
    notes += [SPLIT_NOTE if summary["split"].is_not_null().any() else "", reading_note(reading)]
    for note in filter(None, notes):
        say(note)


def never_settle_note(summary: "pl.DataFrame") -> str:
    """Return a note on answers that never settle, whose exits are never premature; "" if none."""
    told = []
    for row in summary.unique(["model", "task", "method"], maintain_order=True).to_dicts():
        count = f"{row['never_settle']} of {row['n']} never settle"
        if row["never_settle"] == row["n"]:
            count = "no answer settles"
        if row["never_settle"]:
            told.append(f"{count} ({row['task']} on {row['model']})")
    return f"premature: a share of the answers that settle; {', '.join(told)}" if told else ""


def render(summary: "pl.DataFrame") -> Table:
    """Return a table with the full decode's numbers beside each gate's.

    A recorded sampler has already saved steps, so a second column then shows the share of the
    recorded steps that the gate saves.
    """
    shares = {"saving": "saving"}
    if (summary["full_steps"] != summary["budget"]).any():
        shares = {"saving": "saving of budget", "saving_recorded": "of recorded"}
    shares |= {name: name for name in ("fired", "premature", "identical")}
    names = list(NAMES)
    if (summary["method"] == "baseline").all():
        names.remove("method")
    if summary["split"].is_null().all():
        names.remove("split")
    table = new_table(*names, "n", "accuracy (full)", "steps (full)", *shares.values())
    for row in summary.iter_rows(named=True):
        table.add_row(
            *(row[name] or "–" for name in names),
            str(row["n"]),
            f"{percent(row['accuracy'])} ({percent(row['full_accuracy'])})",
            f"{row['steps']:.1f} ({round(row['full_steps'], 1):g})",
            *(percent(row[name]) for name in shares),
        )
    return table
