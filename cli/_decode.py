"""What commands that decode share: options, and choosing methods."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from c4.replay import MethodChoice

DecodedModelOption = Annotated[
    str, typer.Option("--model", help="tiny, llada, llada-1.5, dream, a hub id or a local folder.")
]
SkipOption = Annotated[
    int | None, typer.Option(min=0, help="Examples to pass over first. [default: the task's]")
]
SeedOption = Annotated[int, typer.Option(min=0, help="Shuffles the examples.")]
SourceOption = Annotated[
    str | None,
    typer.Option(
        help="embedded, hub, or a .jsonl/.parquet file with the hub's fields. "
        "[default: embedded for tiny, else hub]"
    ),
]
LengthOption = Annotated[int | None, typer.Option(min=1, help="Positions, L.")]
StepsOption = Annotated[int | None, typer.Option(min=1, help="Step budget, T.")]
BlockOption = Annotated[int | None, typer.Option(min=1, help="Positions a block, B.")]
DeviceOption = Annotated[str, typer.Option(help="auto, cpu, cuda, cuda:1, …")]
DtypeOption = Annotated[str, typer.Option(help="auto, float32, bfloat16 or float16.")]
RevisionOption = Annotated[str | None, typer.Option(help="Commit, tag or branch on the hub.")]
ResumeOption = Annotated[
    bool,
    typer.Option("--resume/--fresh", help="Go on with a run of the same identity, or redo it."),
]
GradedOption = Annotated[bool, typer.Option("--grade/--no-grade", help="Grade the answers.")]
UnsafeOption = Annotated[
    bool, typer.Option("--unsafe-code", help="Run model-written code without isolation.")
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print as JSON.")]
MethodOption = Annotated[
    list[str],
    typer.Option(
        "--method",
        help="baseline, prophet, sched, cvee, confidence, stability, fixed-patience, cctc-core, "
        "cctc, c4, fast-dllm, klass, slowfast, wino, wino+cvee; may be given several times.",
    ),
]
TasksOption = Annotated[
    list[str], typer.Option("--task", help="One of `c4 tasks`; may be given several times.")
]
SettingsOption = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        help="A parameter: H=2, cctc.tau=0.7 for one rule or gate, c4.cvee.tau=0.8 for that of "
        "one method.",
    ),
]
CalibrationOption = Annotated[
    Path | None, typer.Option("--config", help="A gate's setting frozen by `c4 calibrate`.")
]
LabelOption = Annotated[
    str | None, typer.Option(help="What the results go by. [default: the method and its changes]")
]


def choose_methods(
    methods: list[str], settings: list[str] | None, config: Path | None, label: str | None = None
) -> "MethodChoice":
    """The user's choice, each method once."""
    from c4.replay import MethodChoice

    return MethodChoice(list(dict.fromkeys(methods)), settings or (), config, label)
