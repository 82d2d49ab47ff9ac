"""What `c4 replay`, `c4 verify` and `c4 calibrate` share: choosing runs and gates."""

from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from c4.errors import ConfigError, RunError
from c4.gates.kinds import GATES

if TYPE_CHECKING:
    from c4.gates.kinds import Gate
    from c4.replay.calibration import FrozenSetting
    from c4.store.runs import Run
    from c4.tasks import AnswerReading, Task

RunsOption = Annotated[Path, typer.Option("--runs", help="Folder of all recordings.")]
TaskOption = Annotated[
    list[str] | None, typer.Option("--task", help="Only these; may be given several times.")
]
ModelOption = Annotated[str | None, typer.Option("--model", help="Only recordings of this model.")]
GateOption = Annotated[
    list[str] | None,
    typer.Option(
        "--gate",
        help=f"{', '.join(GATES)}, or module:object for one of your own, whose code is run; may "
        "be given several times.",
    ),
]
SetOption = Annotated[
    list[str] | None,
    typer.Option("--set", help="A parameter, as tau=0.8, or sched.patience=2 for one gate only."),
]
ConfigOption = Annotated[
    Path | None, typer.Option("--config", help="A setting frozen by `c4 calibrate`.")
]


def choose_runs(
    root: Path,
    tasks: Sequence[str] | None,
    model: str | None = None,
    reading: "AnswerReading | None" = None,
) -> "list[Run]":
    """The recordings below a folder, of some tasks, to be read in one way."""
    from c4.store.runs import find_recordings
    from c4.tasks import get_task

    for name in tasks or ():
        get_task(name)  # a misspelling is answered as one
    runs = [run for run in find_recordings(root, reading) if model is None or run.model == model]
    missing = set(tasks or ()) - {run.task for run in runs}
    if missing or not runs:
        task = min(missing, default="math")
        what = f"no recording of {task}" if missing else "no recordings"
        raise RunError(
            f"{what} below {root}: c4 record --task {task} --out {root}; or name the folder of a "
            f"single run that was made with c4 run --cells --task {task} --method NAME"
        )
    return [run for run in runs if not tasks or run.task in tasks]


def choose_gates(
    names: Sequence[str],
    settings: Sequence[str] | None,
    task: "Task",
    frozen: "FrozenSetting | None" = None,
) -> "dict[str, Gate]":
    """Gates by name, with the paper's settings for the task, the user's, or frozen ones."""
    from c4.gates.registry import make_gate
    from c4.record.methods import refuse_sampler

    for name in names:
        refuse_sampler(name, task.name)
    parameters = _parse_settings(names, settings or [])
    gates = {name: make_gate(name, task.family, **parameters[name]) for name in names}
    if frozen is not None:
        gates[frozen.label] = frozen.make(task.family, names)
    return gates


def _parse_settings(
    names: Sequence[str], settings: Sequence[str]
) -> Mapping[str, dict[str, float | str]]:
    from c4.replay.grids import parse_value

    chosen: dict[str, dict[str, float | str]] = {name: {} for name in names}
    for text in settings:
        target, _, value = text.partition("=")
        gate, _, parameter = target.rpartition(".")
        takers = [gate] if gate else [name for name in names if parameter in _parameters(name)]
        if not value or not takers or any(taker not in chosen for taker in takers):
            known = "; ".join(f"{name}: {', '.join(_parameters(name))}" for name in names)
            raise ConfigError(f"--set {text}: no chosen gate takes that ({known})")
        for taker in takers:
            chosen[taker][parameter] = parse_value(value)
    return chosen


def _parameters(name: str) -> list[str]:
    from c4.gates.registry import make_gate

    gate: Any = make_gate(name)
    return [spec.name for spec in fields(gate)] if is_dataclass(gate) else []
