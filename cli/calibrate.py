"""`c4 calibrate`."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from rich.table import Table

from c4.cli.complete import complete_gate
from c4.cli.options import (
    ANY_PLACE,
    JsonOption,
    ReadingOptions,
    RecordingOptions,
    UnsafeOption,
    takes_options,
)
from c4.cli.output import say, say_json, show
from c4.cli.progress import progress, status
from c4.cli.tables import new_table, reading_note

if TYPE_CHECKING:
    import polars as pl

    from c4.replay.calibration import Calibration, Requirement
    from c4.replay.pools import RunSplit

HELP = """Find the cheapest setting of a gate within a tolerance, or one whose risk is certified.

The setting is chosen on a pool and tried once on the trajectories held out. The pool of a run is
the examples that its task sets aside for calibration. If none of them is recorded, it is the first
40 trajectories, or a third if there are fewer than 120. `--pool` overrides both. The file keeps the
split, and tables and figures treat these examples as pool for every method. Every parameter takes a
value, a list a,b,c or a range lo:hi:step.

Examples:

    c4 calibrate --gamma 2

    c4 calibrate --gate prophet --set high=5:10:0.5 --tolerance 1.0

    c4 calibrate --gamma 2 --risk 0.05 --delta 0.1 --out cvee.json
"""

SHARES = ("accuracy", "full_accuracy", "saving", "fired", "identical")
"""Prefixes of the names of columns that hold shares."""


@dataclass(frozen=True, kw_only=True)
class RequirementOptions:
    """Requirements that a setting must meet."""

    tolerance: Annotated[
        float, typer.Option(help="Accuracy points that may be lost on any task.")
    ] = 2.0
    risk: Annotated[
        float | None, typer.Option(help="Certify this risk by Learn-Then-Test instead.")
    ] = None
    delta: Annotated[
        float, typer.Option(help="Probability with which the certificate may fail.")
    ] = 0.1
    loss: Annotated[
        Literal["differs", "becomes-wrong"], typer.Option(help="What counts as a loss, for --risk.")
    ] = "differs"
    control: Annotated[
        Literal["fixed-sequence", "bonferroni"],
        typer.Option(help="How errors over the whole grid are controlled, for --risk."),
    ] = "fixed-sequence"

    def make(self) -> "Requirement":
        from c4.replay.calibration import Loss, Requirement
        from c4.replay.certificates import Control

        return Requirement(
            tolerance=self.tolerance,
            risk=self.risk,
            delta=self.delta,
            loss=Loss(self.loss),
            control=Control(self.control),
        )


@takes_options()
def calibrate_command(
    *,
    recordings: RecordingOptions,
    gate: Annotated[
        str,
        typer.Option(
            help="Gate to calibrate; one of your own as in `c4 replay`.",
            autocompletion=complete_gate,
        ),
    ] = "cvee",
    gamma: Annotated[str | None, typer.Option(help="Same as --set gamma=….")] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", help="A parameter and the values to try, such as tau=0.5:0.9:0.1."),
    ] = None,
    answers: ReadingOptions,
    pool: Annotated[
        int | None,
        typer.Option(
            min=1, help="Choose on trajectories with numbers below this. [default: those set aside]"
        ),
    ] = None,
    requirement: RequirementOptions,
    out: Annotated[
        PurePath,
        typer.Option(**ANY_PLACE, help="File for the frozen setting; see `c4 replay --config`."),
    ] = Path("calibration.json"),
    unsafe_code: UnsafeOption = False,
    as_json: JsonOption = False,
) -> None:
    from c4.replay.calibration import calibrate, evaluate_setting, save_calibration
    from c4.replay.grids import make_grid
    from c4.replay.pools import POOL_TASKS, split_runs
    from c4.replay.selection import gate_settings, require_gate
    from c4.store.storage import require_can_put

    require_can_put(out)
    require_gate(gate)
    asked = [*(settings or []), *([] if gamma is None else [f"gamma={gamma}"])]
    grid = make_grid(gate, gate_settings([gate], asked)[gate])
    required, reading = requirement.make(), answers.choose()
    runs = recordings.open(reading)
    if not recordings.task:
        runs = [run for run in runs if run.task_name in POOL_TASKS] or runs
    with progress("reading signals", total=len(runs)) as advance:
        splits = split_runs(runs, pool, gate=gate, unsafe_code=unsafe_code, note=advance)
    with status(f"trying {len(grid)} settings"):
        result = calibrate(grid, [split.pool for split in splits], required)
        held_out = evaluate_setting(result, [s.held_out for s in splits if s.held_out])
    save_calibration(out, result, splits)
    if as_json:
        say_json(summary(result, splits) | {"held_out": held_out.to_dicts(), "out": out})
        return
    show_calibration(result, splits, held_out)
    frozen = f"frozen in {out}{_taken_for_pool(splits, out, recordings.runs)}"
    say("\n".join(filter(None, [reading_note(reading), frozen])))


def _taken_for_pool(splits: "Sequence[RunSplit]", out: PurePath, runs: PurePath) -> str:
    """Return a note on the evaluation examples that tables and figures will count as pool."""
    from c4.store.locations import resolve_location

    counts = [f"{s.beyond_set_aside} of {s.name}" for s in splits if s.beyond_set_aside]
    if not counts:
        return ""
    found = resolve_location(out).parent in (Path.cwd(), resolve_location(runs))
    where = "" if found else f" given --calibration {out}"
    return (
        f"; tables and figures{where} count what it was chosen on as pool for every method: "
        f"{', '.join(counts)}"
    )


def summary(result: "Calibration", splits: "Sequence[RunSplit]") -> dict[str, Any]:
    """Return the facts about the chosen setting that --json prints."""
    return {
        "gate": result.grid.name,
        "parameters": result.parameters,
        "statement": result.statement,
        "fired": result.fired,
        "pool": {split.name: len(split.pool) for split in splits},
        "split": {split.name: split.summary for split in splits},
    }


def show_calibration(
    result: "Calibration", splits: "Sequence[RunSplit]", held_out: "pl.DataFrame"
) -> None:
    """Print the split, the choice, the Pareto front, the neighbours and the held-out results."""
    pool = ", ".join(f"{split.name} {len(split.pool)}" for split in splits)
    for split in splits:
        say(split.statement)
    say(f"pool: {pool}; {len(result.grid)} settings of {result.grid.name}")
    say(f"chosen: {result.parameters}\n{result.statement}")
    show(render("Pareto front on the pool", result.pareto.drop("pareto")))
    if result.chosen is not None:
        show(render("the choice and its neighbours", result.neighbours))
        show(render("held out, tried once", held_out))


def render(title: str, frame: "pl.DataFrame") -> Table:
    """Return a frame as a table, with shares in percent."""
    headings = {
        name: f"{name.replace('_', ' ')} %" for name in frame.columns if name.startswith(SHARES)
    }
    named = headings | {"worst_drop": "worst drop, points"}
    table = new_table(*(named.get(name, name) for name in frame.columns), title=title)
    for row in frame.iter_rows(named=True):
        cells = []
        for name, value in row.items():
            if isinstance(value, float):
                value = f"{100 * value:.1f}" if name in headings else f"{value:.3g}"
            cells.append(str(value))
        table.add_row(*cells)
    return table
