"""`c4 bench`."""

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from c4.cli.options import (
    DecodeOptions,
    JsonOption,
    LabelOption,
    MethodConfigOption,
    MethodOption,
    MethodSettingsOption,
    TasksOption,
    several_tasks,
    takes_options,
)
from c4.cli.output import say, say_json, show
from c4.cli.progress import progress, status
from c4.cli.tables import new_table

if TYPE_CHECKING:
    from c4.record.bench import TimingProtocol
    from c4.record.methods import ResolvedMethod
    from c4.record.plan import Plan

JSON_COLUMNS = ("settings", "identity")
"""Columns stored as JSON text, which --json prints as objects."""
HELP = """Time methods by the paper's protocol.

The protocol decodes 20 fixed examples in 3 passes after 2 warm-ups, and reports the mean of the
pass means and their coefficient of variation. The clock runs around each whole decode, gate
included, and waits for the device. Methods take turns from pass to pass. A speedup is reported only
if the baseline is among the methods of the call. The numbers are kept in OUT/bench.

Examples:

    c4 bench --method baseline --method c4 --task mmlu

    c4 bench --method baseline --method c4 --method wino --task gsm8k --n 10 --json
"""


@takes_options("n", "skip", "batch", "resume", "graded", "unsafe_code")
def bench_command(
    *,
    method: MethodOption,
    task: TasksOption,
    n: Annotated[int, typer.Option(min=1, help="Number of examples to time.")] = 20,
    warmups: Annotated[int, typer.Option(min=0, help="Number of warm-up examples.")] = 2,
    passes: Annotated[
        int, typer.Option(min=1, max=1000, help="Number of passes over the examples.")
    ] = 3,
    skip: Annotated[
        int | None,
        typer.Option(
            min=0, help="Number of examples to skip first. [default: 40; 0 of a file of your own]"
        ),
    ] = None,
    settings: MethodSettingsOption = None,
    config: MethodConfigOption = None,
    label: LabelOption = None,
    decode: DecodeOptions,
    as_json: JsonOption = False,
) -> None:
    from c4.record.plan import choose_methods, timing_config
    from c4.record.settings import MethodChoice
    from c4.store.storage import require_writable
    from c4.store.timings import timings_folder

    choice = MethodChoice(method, settings or (), config, label)
    timed = {"n": n + warmups, "graded": False}
    configs = [decode.config(name, config, **timed) for name in several_tasks(task, decode.out)]
    chosen = [choose_methods(timing_config(one, skip), choice) for one in configs]
    for plan, _ in chosen:
        require_writable(timings_folder(plan.config.out, plan.checkpoint.name, plan.task.name))
    from c4.record.bench import TimingProtocol  # loads torch: import only after the name checks

    rows = time_methods(chosen, TimingProtocol(n=n, warmups=warmups, passes=passes))
    if as_json:
        say_json([facts(row) for row in rows])
    else:
        show(render(rows))
    if all(row["speedup"] is None for row in rows):
        say("no speedup: add --method baseline to this call to get one", err=True)


def time_methods(
    chosen: "Sequence[tuple[Plan, Sequence[ResolvedMethod]]]", protocol: "TimingProtocol"
) -> list[dict[str, Any]]:
    """Time the methods of every task, loading the model once, and store a table per task."""
    from c4.record.bench import Bench
    from c4.record.plan import load_planned
    from c4.store.timings import write_timings

    first, _ = chosen[0]
    with status(f"loading {first.checkpoint.name}"):
        loaded = load_planned(first)
    rows = []
    for plan, methods in chosen:
        bench = Bench(plan, methods, loaded, protocol)
        with progress(f"timing {plan.task.name}", len(bench)) as advance:
            for timed in bench:
                advance(timed)
        table = bench.table()
        model, task = plan.checkpoint.name, plan.task.name
        written = write_timings(plan.config.out, model, task, table)
        names = {"model": model, "task": task, "out": str(written)}
        rows += [names | row for row in table.to_pylist()]
    return rows


def facts(row: dict[str, Any]) -> dict[str, Any]:
    """Return a timing for --json: JSON columns parsed, and the CV as a fraction."""
    objects = {name: json.loads(row[name]) for name in JSON_COLUMNS}
    shown = row | objects | {"steps": row["mean_steps"], "cv": row["cv"] / 100}
    del shown["mean_steps"]
    return shown


def render(rows: list[dict[str, Any]]) -> Table:
    """Return a table with one line per task and method."""
    columns = ("task", "method", "s each", "CV", "TPS", "TPS before end", "tokens/forward")
    table = new_table(*columns, "steps", "speedup", "step ratio")
    for row in rows:
        ratios = ("–" if row[k] is None else f"{row[k]:.2f}×" for k in ("speedup", "step_ratio"))
        table.add_row(
            row["task"],
            row["method"],
            f"{row['mean_seconds']:.4f}",
            f"{row['cv']:.1f}%",
            f"{row['tps']:.1f}",
            f"{row['tps_before_end']:.1f}",
            f"{row['tokens_per_forward']:.2f}",
            f"{row['mean_steps']:.1f}",
            *ratios,
        )
    return table
