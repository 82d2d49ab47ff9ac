"""The options of every command that decodes, declared once, and the one config they build."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import wraps
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from c4.cli.complete import complete_method, complete_model, complete_source, complete_task
from c4.cli.places import ANY_PLACE, RUNS_HELP
from c4.cli.reading import EndingOption, GraderOption, ReadingOption, choose_reading
from c4.errors import ConfigError
from c4.models import ALIASES, EMBEDDED
from c4.record.methods import METHODS
from c4.store.locations import Location

if TYPE_CHECKING:
    from c4.record.choices import MethodChoice
    from c4.record.plan import RunConfig

TASK_HELP = (
    "A task that `c4 tasks` lists, or one of your own: a YAML file, or code that is run, as in "
    "my_task.py:TASK or module:TASK"
)
TaskOption = Annotated[
    list[str], typer.Option("--task", help=f"{TASK_HELP}.", autocompletion=complete_task)
]
"""A list, so that a second one is seen: see `only_task`."""
TasksOption = Annotated[
    list[str],
    typer.Option(
        "--task", help=f"{TASK_HELP}; may be given several times.", autocompletion=complete_task
    ),
]
MethodOption = Annotated[
    list[str],
    typer.Option(
        "--method",
        autocompletion=complete_method,
        help=f"{', '.join(METHODS)}; a pair rule+gate such as klass+cvee; or rules and gates of "
        "your own, whose code is run, as in wino+my_gates:Calm or my_rules.py:Greedy. May be "
        "given several times.",
    ),
]
SettingsOption = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        help="Set a parameter: H=2 wherever there is one, cctc.tau=0.7 in one rule or gate, "
        "c4.cvee.tau=0.8 in one method. May be given several times.",
    ),
]
CalibrationOption = Annotated[
    Location | None,
    typer.Option(
        "--config", **ANY_PLACE, help="Use the setting of a gate that `c4 calibrate` froze."
    ),
]
LabelOption = Annotated[
    str | None,
    typer.Option(help="Name of the results. [default: the method and its changed parameters]"),
]
UnsafeOption = Annotated[
    bool, typer.Option("--unsafe-code", help="Run model-written code without isolation.")
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print as JSON.")]

DECODE_OPTIONS: dict[str, tuple[Any, Any]] = {
    "model": (
        Annotated[
            str,
            typer.Option(
                help=f"{', '.join([EMBEDDED, *ALIASES])}, a hub id or a local folder.",
                autocompletion=complete_model,
            ),
        ],
        EMBEDDED,
    ),
    "n": (
        Annotated[
            int | None,
            typer.Option(min=1, help="Number of examples per task. [default: the paper's]"),
        ],
        None,
    ),
    "skip": (
        Annotated[
            int | None,
            typer.Option(min=0, help="Number of examples to skip first. [default: the task's]"),
        ],
        None,
    ),
    "seed": (Annotated[int, typer.Option(help="Seed that shuffles the examples.")], 0),
    "source": (
        Annotated[
            str | None,
            typer.Option(
                help="Where examples come from: embedded, hub, or a .jsonl/.parquet file with the "
                f"hub's fields. [default: embedded for {EMBEDDED}, otherwise hub]",
                autocompletion=complete_source,
            ),
        ],
        None,
    ),
    "prompt": (
        Annotated[
            str | None,
            typer.Option(
                metavar="FILE",
                help="A template that replaces the task's wording; {{question}} stands for a field "
                "of the row, {{prompt}} for the task's own wording.",
            ),
        ],
        None,
    ),
    "gen_length": (
        Annotated[int | None, typer.Option(min=1, help="Number of positions to generate, L.")],
        None,
    ),
    "steps": (Annotated[int | None, typer.Option(min=1, help="Step budget, T.")], None),
    "block_length": (
        Annotated[int | None, typer.Option(min=1, help="Number of positions per block, B.")],
        None,
    ),
    "reading": (ReadingOption, None),
    "ending": (EndingOption, None),
    "grader": (GraderOption, None),
    "device": (Annotated[str, typer.Option(help="auto, cpu, cuda, cuda:1, …")], "auto"),
    "dtype": (
        Annotated[str, typer.Option(help="auto, float32, bfloat16 or float16.")],
        "auto",
    ),
    "batch": (
        Annotated[
            str,
            typer.Option(
                metavar="B",
                help="Number of examples decoded together, or auto for as many as fit the device.",
            ),
        ],
        "1",
    ),
    "revision": (
        Annotated[str | None, typer.Option(help="Commit, tag or branch on the hub.")],
        None,
    ),
    "out": (Annotated[Location, typer.Option(**ANY_PLACE, help=RUNS_HELP)], Path("runs")),
    "resume": (
        Annotated[
            bool,
            typer.Option(
                "--resume/--fresh",
                help="Continue a run of the same identity, or delete it and start over.",
            ),
        ],
        True,
    ),
    "mixed": (
        Annotated[
            bool,
            typer.Option(
                "--mixed",
                help="Continue a run that was begun on another GPU model or with other libraries.",
            ),
        ],
        False,
    ),
    "grade": (Annotated[bool, typer.Option("--grade/--no-grade", help="Grade the answers.")], True),
    "unsafe_code": (UnsafeOption, False),
}
"""Annotation and default of every option that says what to decode."""


@dataclass(frozen=True)
class DecodeOptions:
    """The decode options that a user gave, for any task."""

    given: dict[str, Any]

    def config(self, task: str, calibration: Location | None = None, **changes: Any) -> "RunConfig":
        """The configuration of a task.

        Args:
            calibration: a calibration file; its reading is used unless the user gave one.
        """
        from c4.record.plan import RunConfig
        from c4.tasks.readings import ReadingNames

        given = self.given
        asked = {
            "model": given["model"],
            "revision": given["revision"],
            "source": given["source"],
            "prompt": given["prompt"],
            "n": given["n"],
            "skip": given["skip"],
            "seed": given["seed"],
            "length": given["gen_length"],
            "budget": given["steps"],
            "block_length": given["block_length"],
            "device": given["device"],
            "dtype": given["dtype"],
            "batch": parse_batch(given["batch"]),
            "out": given["out"],
            "fresh": not given["resume"],
            "mixed": given["mixed"],
            "graded": given["grade"],
            "unsafe_code": given["unsafe_code"],
            "names": ReadingNames(given["reading"], given["grader"]),
            "reading": choose_reading(
                given["reading"], given["ending"], given["grader"], calibration
            ),
        }
        return RunConfig(task=task, **asked | changes)


def parse_batch(text: str) -> int | None:
    """A number of examples; None for `auto`."""
    if text == "auto":
        return None
    if not re.fullmatch(r"0*[1-9][0-9]{0,8}", text):
        raise ConfigError(f"--batch {text}: give a number of examples from 1 on, or auto")
    return int(text)


def only_task(named: Sequence[str], out: Location) -> str:
    """The task of a command that takes a single one."""
    first, *others = several_tasks(named, out)
    if others:
        raise ConfigError(
            f"--task {first} --task {others[0]}: one task is recorded at a time; give the command "
            "once for each"
        )
    return first


def several_tasks(named: Sequence[str], out: Location) -> list[str]:
    """The tasks of a command that takes several, each with results of its own."""
    from c4.store.runs import find_recorded_tasks

    names = list(dict.fromkeys(named))
    if len(names) > 1:
        find_recorded_tasks(names, out)  # refuses two tasks whose results have one name
    return names


def takes_decode_options(*without: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Add all decode options but some to a command, which gets them as its argument `decode`."""
    options = {name: o for name, o in DECODE_OPTIONS.items() if name not in without}

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        own = [p for p in signature(command).parameters.values() if p.name != "decode"]
        shared = [
            Parameter(name, Parameter.KEYWORD_ONLY, annotation=kind, default=default)
            for name, (kind, default) in options.items()
        ]

        @wraps(command)
        def wrapped(**given: Any) -> None:
            asked = {name: default for name, (_, default) in DECODE_OPTIONS.items()}
            asked |= {name: given.pop(name) for name in options}
            command(decode=DecodeOptions(asked), **given)

        keyword = [p.replace(kind=Parameter.KEYWORD_ONLY) for p in own]
        parameters = [*keyword, *shared]
        wrapped.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
        wrapped.__annotations__ = {p.name: p.annotation for p in parameters}
        return wrapped

    return decorate


def method_choice(
    methods: list[str],
    settings: list[str] | None,
    config: Location | None,
    label: str | None = None,
) -> "MethodChoice":
    """The user's choice, each method once."""
    from c4.record.choices import MethodChoice

    return MethodChoice(list(dict.fromkeys(methods)), settings or (), config, label)
