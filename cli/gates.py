"""What `c4 replay`, `c4 verify` and `c4 calibrate` share: choosing runs and gates."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from c4.cli.complete import complete_gate, complete_method, complete_model, complete_task
from c4.cli.places import ANY_PLACE, RUNS_HELP
from c4.errors import RunError
from c4.gates.registry import GATES
from c4.store.locations import Location

if TYPE_CHECKING:
    from c4.gates.calibrations import FrozenSetting
    from c4.gates.gate import Gate
    from c4.replay.choices import GateChoice
    from c4.store.runs import Run
    from c4.tasks import AnswerReading, Task

RunsOption = Annotated[Location, typer.Option("--runs", **ANY_PLACE, help=RUNS_HELP)]
TaskOption = Annotated[
    list[str] | None,
    typer.Option(
        "--task",
        autocompletion=complete_task,
        help="Use only this task. A YAML task of your own goes by the name of its runs, and a "
        "Python task by what you typed to record it. May be given several times.",
    ),
]
ModelOption = Annotated[
    str | None,
    typer.Option("--model", help="Use only runs of this model.", autocompletion=complete_model),
]
GateOption = Annotated[
    list[str] | None,
    typer.Option(
        "--gate",
        autocompletion=complete_gate,
        help=f"{', '.join(GATES)}, or one of your own, whose code is run: module:object or "
        "path/to/file.py:object. May be given several times.",
    ),
]
SetOption = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        help="Set a parameter: tau=0.8 in every gate that has it, sched.patience=2 in one gate. "
        "May be given several times.",
    ),
]
ComparedOption = Annotated[
    list[str] | None,
    typer.Option(
        "--gate",
        autocompletion=complete_gate,
        help="A gate to compare, as in `c4 replay`; may be given several times, and is listed in "
        "that order.",
    ),
]
BesideOption = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        help="Show a gate with another setting beside the gate as it is: tau=0.8 or cvee.tau=0.8. "
        "May be given several times.",
    ),
]
ConfigsOption = Annotated[
    list[Location] | None,
    typer.Option(
        "--config",
        **ANY_PLACE,
        help="Show the setting that `c4 calibrate` froze beside the gate as it is; may be given "
        "several times.",
    ),
]
ShownMethodsOption = Annotated[
    list[str] | None,
    typer.Option(
        "--method",
        autocompletion=complete_method,
        help="Show only these methods and their variants, in this order, beside the baseline; by "
        "name or label.",
    ),
]
ConfigOption = Annotated[
    Location | None,
    typer.Option("--config", **ANY_PLACE, help="Use a setting that `c4 calibrate` froze."),
]


def choose_runs(
    root: Location,
    tasks: Sequence[str] | None,
    model: str | None = None,
    reading: "AnswerReading | None" = None,
) -> "list[Run]":
    """The recordings of some tasks below a folder, opened under one reading."""
    from c4.analysis.exchange.imports import refuse_imported
    from c4.store.runs import find_recorded_tasks, find_recordings

    refuse_imported(root)
    named = find_recorded_tasks(tasks or (), root)  # refuses a misspelling
    typed = {task.name: name for name, task in named.items()}
    found = find_recordings(root, reading, list(named.values()))
    runs = [run for run in found if model is None or run.model == model]
    missing = typed.keys() - {run.task_name for run in runs}
    if missing or not runs:
        task = typed[min(missing)] if missing else "math"
        what = f"no recording of {task}" if missing else "no recordings"
        raise RunError(
            f"{what} below {root}: c4 record --task {task} --out {root}; or name the folder of a "
            f"single run that was made with c4 run --cells --task {task} --method NAME"
        )
    return runs


def choose_gates(
    names: Sequence[str],
    settings: Sequence[str] | None,
    task: "Task",
    frozen: "FrozenSetting | None" = None,
) -> "dict[str, Gate]":
    """Gates by name, with the paper's settings for the task, the user's, or frozen ones."""
    from c4.record.methods import refuse_sampler
    from c4.replay.choices import GateChoice

    for name in names:
        refuse_sampler(name, task.name)
    return GateChoice(names, settings or (), [frozen] if frozen else ()).gates(task.family)


def compared_gates(
    names: Sequence[str], settings: Sequence[str] | None, configs: Sequence[Location] | None
) -> "GateChoice":
    """Gates to be shown side by side: each as it is, with the user's settings, and frozen ones."""
    from c4.gates.calibrations import load_calibration
    from c4.record.methods import refuse_sampler
    from c4.replay.choices import GateChoice

    for name in names:
        refuse_sampler(name)
    frozen = [load_calibration(path) for path in configs or ()]
    known = [setting.gate for setting in frozen if setting.gate in GATES]
    return GateChoice(tuple(dict.fromkeys([*names, *known])), settings or (), frozen, beside=True)


def one_config(configs: Sequence[Location] | None) -> Location | None:
    """The calibration whose reading is used; all must have been made under the same."""
    from c4.gates.calibrations import load_calibration

    if not configs:
        return None
    first, *others = configs
    for other in others:
        load_calibration(other).check_reading(load_calibration(first).reading)
    return first
