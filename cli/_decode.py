"""What `c4 run` and `c4 bench` share: choosing methods, tasks and examples."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from c4.replay import MethodChoice

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
