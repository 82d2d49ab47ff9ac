"""Options that several commands take, each declared once.

An option of a single command is a parameter of the command's function, annotated with
`Annotated[TYPE, typer.Option(help=...)]`. Options that belong together are fields of a dataclass
below, which `takes_options` expands for typer. After a change, run `python docs/reference.py` to
regenerate docs/cli.md.

Most of c4 is imported only when a command runs, so that `c4 --help` and completion respond at once.
Help texts therefore spell names out; a test compares them with the registries.
"""

import re
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields, is_dataclass
from functools import wraps
from inspect import Parameter, Signature, signature
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from c4.cli.complete import (
    complete_engine,
    complete_gate,
    complete_grader,
    complete_method,
    complete_model,
    complete_reading,
    complete_source,
    complete_task,
    run_folders,
)
from c4.errors import ConfigError, RunError

if TYPE_CHECKING:
    from c4.analysis import Library
    from c4.gates.calibration_files import FrozenSetting
    from c4.gates.gate import Gate
    from c4.record.engines import EngineChoice
    from c4.record.plan import RunConfig
    from c4.store.runs import Run
    from c4.tasks import AnswerReading, Task


def parse_any_place(text: str) -> PurePath:
    """Parse a folder or an address that a user typed."""
    from c4.store.locations import parse_location

    return parse_location(text)


def parse_local_place(text: str) -> Path:
    """Parse a file or folder on this machine that a user typed."""
    from c4.store.locations import parse_local_path

    return parse_local_path(text)


ANY_PLACE: dict[str, Any] = {"parser": parse_any_place, "metavar": "PATH"}
"""Settings of an option that takes a folder, or an address such as s3://bucket/runs."""
LOCAL_PLACE: dict[str, Any] = {"parser": parse_local_place, "metavar": "PATH"}
"""Settings of an option that takes a file or folder on this machine."""

JsonOption = Annotated[bool, typer.Option("--json", help="Print as JSON.")]
UnsafeOption = Annotated[
    bool, typer.Option("--unsafe-code", help="Run model-written code without isolation.")
]
RUNS_HELP = "Folder that holds all runs, or its address, such as s3://bucket/runs."
RunsOption = Annotated[PurePath, typer.Option("--runs", **ANY_PLACE, help=RUNS_HELP)]
OutRunsOption = Annotated[PurePath, typer.Option("--out", **ANY_PLACE, help=RUNS_HELP)]
RunArgument = Annotated[
    PurePath,
    typer.Argument(**ANY_PLACE, help="Folder of one run.", autocompletion=run_folders),
]

TASK_HELP = (
    "A task that `c4 tasks` lists, or one of your own: a YAML file, or code that is run, as in "
    "my_task.py:TASK or module:TASK"
)
TaskOption = Annotated[
    list[str], typer.Option("--task", help=f"{TASK_HELP}.", autocompletion=complete_task)
]
"""Option of a command that decodes one task. It is a list so that a second one can be refused."""
TasksOption = Annotated[
    list[str],
    typer.Option(
        "--task", help=f"{TASK_HELP}; may be given several times.", autocompletion=complete_task
    ),
]
RecordedTasksOption = Annotated[
    list[str] | None,
    typer.Option(
        "--task",
        autocompletion=complete_task,
        help="Use only this task. A YAML task of your own goes by the name of its runs, and a "
        "Python task by what you typed to record it. May be given several times.",
    ),
]
RecordedModelOption = Annotated[
    str | None,
    typer.Option("--model", help="Use only runs of this model.", autocompletion=complete_model),
]
MethodOption = Annotated[
    list[str],
    typer.Option(
        "--method",
        autocompletion=complete_method,
        help="baseline, prophet, sched, confidence, stability, fixed-patience, cvee, cctc-core, "
        "cctc, c4, fast-dllm, klass, slowfast, wino, wino+cvee; a pair rule+gate such as "
        "klass+cvee; or rules and gates of your own, whose code is run, as in wino+my_gates:Calm "
        "or my_rules.py:Greedy. May be given several times.",
    ),
]
MethodSettingsOption = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        help="Set a parameter: H=2 wherever there is one, cctc.tau=0.7 in one rule or gate, "
        "c4.cvee.tau=0.8 in one method. May be given several times.",
    ),
]
MethodConfigOption = Annotated[
    PurePath | None,
    typer.Option(
        "--config", **ANY_PLACE, help="Use the setting of a gate that `c4 calibrate` froze."
    ),
]
LabelOption = Annotated[
    str | None,
    typer.Option(help="Name of the results. [default: the method and its changed parameters]"),
]
GateOption = Annotated[
    list[str] | None,
    typer.Option(
        "--gate",
        autocompletion=complete_gate,
        help="cvee, confidence, stability, fixed-patience, prophet, sched, progress, oracle, or "
        "one of your own, whose code is run: module:object or path/to/file.py:object. May be "
        "given several times.",
    ),
]
GateSettingsOption = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        help="Set a parameter: tau=0.8 in every gate that has it, sched.patience=2 in one gate. "
        "May be given several times.",
    ),
]
ReadingOption = Annotated[
    str | None,
    typer.Option(
        "--reading",
        metavar="NAME",
        autocompletion=complete_reading,
        help="How answers are found: careful knows the example's choices and how models write "
        "answers; plain is the paper's way; number, boxed, letter or function look for that kind "
        "of answer; or an extractor of your own, which is run: my_extractors.py:total. "
        "[default: careful, or as in --config]",
    ),
]
EndingOption = Annotated[
    Literal["cut", "skip"] | None,
    typer.Option(
        "--ending",
        help="What counts after the first end token: nothing (cut), or everything except special "
        "tokens (skip), as in the authors' release. [default: cut, or as in --config]",
    ),
]
GraderOption = Annotated[
    str | None,
    typer.Option(
        "--grader",
        autocompletion=complete_grader,
        help="How to grade an answer whose form differs from the gold answer's: as wrong (exact), "
        "or by asking a computer algebra system (math-verify; needs "
        "pip install 'c4-dlm[math]'); or a function of your own, which is run: my_graders.py:near. "
        "[default: exact, or as in --config]",
    ),
]


@dataclass(frozen=True, kw_only=True)
class ReadingOptions:
    """Options for reading and grading answers."""

    reading: ReadingOption = None
    ending: EndingOption = None
    grader: GraderOption = None

    def choose(self, *configs: PurePath) -> "AnswerReading":
        """Return the user's reading, else that of the calibration files, else the default.

        All calibration files must have been made under the chosen reading.
        """
        from c4.gates.calibration_files import load_calibration
        from c4.tasks import AnswerReading, Ending
        from c4.tasks.graders import find_grader
        from c4.tasks.reading.extractors import find_style

        frozen = [load_calibration(config) for config in configs]
        usual = frozen[0].reading if frozen else AnswerReading()
        for setting in frozen:
            setting.check_reading(usual)
        chosen = AnswerReading(
            find_style(self.reading) if self.reading else usual.style,
            Ending(self.ending or usual.ending),
            find_grader(self.grader) if self.grader else usual.grader,
        )
        for setting in frozen:
            setting.check_reading(chosen)
        return chosen


@dataclass(frozen=True, kw_only=True)
class RecordingOptions:
    """Options that select recordings."""

    runs: RunsOption = Path("runs")
    task: RecordedTasksOption = None
    model: RecordedModelOption = None

    def open(self, reading: "AnswerReading") -> "list[Run]":
        """Open the recordings under a reading; fail if a task that was named has none."""
        from c4.store.runs import find_recorded_tasks, find_recordings

        named = find_recorded_tasks(self.task or (), self.runs)
        found = find_recordings(self.runs, reading, list(named.values()))
        runs = [run for run in found if self.model in (None, run.model)]
        there = {run.task_name for run in runs}
        missing = [typed for typed, task in named.items() if task.name not in there]
        if missing or not runs:
            task = min(missing, default="math")
            what = f"no recording of {task}" if missing else "no recordings"
            raise RunError(
                f"{what} below {self.runs}: c4 record --task {task} --out {self.runs}; or name the "
                f"folder of a single run that was made with c4 run --cells --task {task} --method "
                "NAME"
            )
        return runs


@dataclass(frozen=True, kw_only=True)
class ComparisonOptions:
    """Options that select runs, methods, gates and calibrations for tables and figures."""

    task: RecordedTasksOption = None
    model: RecordedModelOption = None
    method: Annotated[
        list[str] | None,
        typer.Option(
            "--method",
            autocompletion=complete_method,
            help="Show only these methods and their variants, in this order, beside the baseline; "
            "by name or label.",
        ),
    ] = None
    gate: Annotated[
        list[str] | None,
        typer.Option(
            "--gate",
            autocompletion=complete_gate,
            help="A gate to compare, as in `c4 replay`; may be given several times, and is listed "
            "in that order.",
        ),
    ] = None
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            help="Show a gate with another setting beside the gate as it is: tau=0.8 or "
            "cvee.tau=0.8. May be given several times.",
        ),
    ] = None
    config: Annotated[
        list[PurePath] | None,
        typer.Option(
            "--config",
            **ANY_PLACE,
            help="Show the setting that `c4 calibrate` froze beside the gate as it is; may be "
            "given several times.",
        ),
    ] = None
    calibration: Annotated[
        list[PurePath] | None,
        typer.Option(
            "--calibration",
            **ANY_PLACE,
            help="A file of `c4 calibrate`. [default: those in the current folder and in --runs]",
        ),
    ] = None
    answers: ReadingOptions
    unsafe_code: UnsafeOption = False

    @contextmanager
    def library(
        self,
        runs: PurePath,
        names: Sequence[str] | None,
        usual_gates: Sequence[str],
        **options: Any,
    ) -> "Iterator[Library]":
        """Open the runs below a folder; within the context, the user's names are listed first.

        Args:
            names: the requested tables or figures.
            usual_gates: gates to compare if the user names none.
        """
        from c4.analysis.exchange.imports import library_kind
        from c4.analysis.paper_names import listed_in
        from c4.gates.calibration_files import load_calibration
        from c4.gates.registry import GATES
        from c4.replay.selection import GateChoice, require_gate

        configs = self.config or []
        gates = self.gate or usual_gates
        for name in gates:
            require_gate(name)
        frozen = [load_calibration(path) for path in configs]
        known = [setting.gate for setting in frozen if setting.gate in GATES]
        shown = tuple(dict.fromkeys([*gates, *known]))
        library = library_kind(runs, names)(
            runs,
            tasks=self.task,
            model=self.model,
            methods=self.method,
            gates=GateChoice(shown, self.settings or (), frozen, beside=True),
            calibrations=self.calibration,
            reading=self.answers.choose(*configs),
            unsafe_code=self.unsafe_code,
            **options,
        )
        with listed_in(library.tasks, [*(self.method or ()), *(self.gate or ())]):
            yield library


@dataclass(frozen=True, kw_only=True)
class DecodeOptions:
    """Options for the examples to decode, the model, and the place of the results."""

    model: Annotated[
        str,
        typer.Option(
            help="tiny, llada, llada-1.5, dream, a hub id or a local folder.",
            autocompletion=complete_model,
        ),
    ] = "tiny"
    n: Annotated[
        int | None,
        typer.Option(min=1, help="Number of examples per task. [default: the paper's]"),
    ] = None
    skip: Annotated[
        int | None,
        typer.Option(min=0, help="Number of examples to skip first. [default: the task's]"),
    ] = None
    seed: Annotated[int, typer.Option(help="Seed that shuffles the examples.")] = 0
    source: Annotated[
        str | None,
        typer.Option(
            help="Where examples come from: embedded, hub, or a .jsonl/.parquet file with the "
            "hub's fields. [default: embedded for tiny, otherwise hub]",
            autocompletion=complete_source,
        ),
    ] = None
    prompt: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="File with a template that replaces the task's wording; {{question}} stands for "
            "a field of the row, {{prompt}} for the task's own wording.",
        ),
    ] = None
    length: Annotated[
        int | None,
        typer.Option("--gen-length", min=1, help="Number of positions to generate, L."),
    ] = None
    budget: Annotated[int | None, typer.Option("--steps", min=1, help="Step budget, T.")] = None
    block_length: Annotated[
        int | None, typer.Option(min=1, help="Number of positions per block, B.")
    ] = None
    answers: ReadingOptions
    device: Annotated[str, typer.Option(help="auto, cpu, cuda, cuda:1, …")] = "auto"
    dtype: Annotated[str, typer.Option(help="auto, float32, bfloat16 or float16.")] = "auto"
    batch: Annotated[
        str,
        typer.Option(
            metavar="B",
            help="Number of examples decoded together, or auto for as many as fit the device.",
        ),
    ] = "1"
    revision: Annotated[str | None, typer.Option(help="Commit, tag or branch on the hub.")] = None
    out: OutRunsOption = Path("runs")
    resume: Annotated[
        bool,
        typer.Option(
            "--resume/--fresh",
            help="Continue a run of the same identity, or delete it and start over.",
        ),
    ] = True
    mixed: Annotated[
        bool,
        typer.Option(
            "--mixed",
            help="Continue a run that was begun on another GPU model or with other libraries.",
        ),
    ] = False
    graded: Annotated[bool, typer.Option("--grade/--no-grade", help="Grade the answers.")] = True
    unsafe_code: UnsafeOption = False

    def config(self, task: str, calibration: PurePath | None = None, **changes: Any) -> "RunConfig":
        """Return the configuration for decoding a task.

        Args:
            calibration: a calibration file; its reading is used unless the user gave one.
        """
        from c4.record.plan import RunConfig
        from c4.tasks.graders import ReadingNames

        if not re.fullmatch(r"auto|0*[1-9][0-9]{0,8}", self.batch):
            raise ConfigError(f"--batch {self.batch}: give a number of examples from 1 on, or auto")
        asked = vars(self) | {
            "batch": None if self.batch == "auto" else int(self.batch),
            "fresh": not self.resume,
            "names": ReadingNames(self.answers.reading, self.answers.grader),
            "reading": self.answers.choose(*filter(None, [calibration])),
        }
        del asked["answers"], asked["resume"]
        return RunConfig(task=task, **asked | changes)


@dataclass(frozen=True, kw_only=True)
class EngineOptions:
    """Options that assign the work to this process, or to workers that an engine starts."""

    engine: Annotated[
        str | None,
        typer.Option(
            autocompletion=complete_engine,
            help="Start workers: local (processes, one for each GPU), ray or slurm. "
            "[default: this process works alone]",
        ),
    ] = None
    workers: Annotated[
        int | None, typer.Option(min=1, help="Number of workers. [default: one for each GPU]")
    ] = None
    ray_address: Annotated[
        str | None, typer.Option(help="Address of a Ray cluster. [default: one is started here]")
    ] = None
    slurm: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=VALUE",
            help="A setting of the Slurm jobs, such as partition=gpu or timeout_min=720; "
            "cluster=local tries it without Slurm. May be given several times.",
        ),
    ] = None

    def choose(self, device: str = "auto") -> "EngineChoice":
        """Return the user's engine, or no engine in a worker that an engine has started."""
        from c4.record.engines import EngineChoice
        from c4.record.engines.worker import this_worker

        if this_worker().device is not None:
            return EngineChoice()
        settings = {}
        for setting in self.slurm or ():
            name, equals, value = setting.partition("=")
            if not (name and equals and value):
                raise ConfigError(f"--slurm {setting}: give NAME=VALUE, such as partition=gpu")
            settings[name] = value
        return EngineChoice(self.engine, self.workers, device, self.ray_address, settings)


def takes_options(*without: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Decorate a command whose parameters may be groups of options: the dataclasses above.

    Typer sees one option for each field of the dataclass; the command gets the dataclass.

    Args:
        without: fields that the command does not offer; they keep their defaults.
    """

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        own = signature(command).parameters
        groups = {name: p.annotation for name, p in own.items() if is_dataclass(p.annotation)}
        shown: list[Parameter] = []
        for name, parameter in own.items():
            shown += _options(groups[name], without) if name in groups else [parameter]

        @wraps(command)
        def filled(**given: Any) -> None:
            made = {name: _fill(group, given, without) for name, group in groups.items()}
            command(**given, **made)

        filled.__signature__ = Signature(shown)  # type: ignore[attr-defined]
        filled.__annotations__ = {option.name: option.annotation for option in shown}
        return filled

    return decorate


def _options(group: Any, without: Collection[str]) -> Iterator[Parameter]:
    """Yield a parameter for each field of a group and of nested groups."""
    for field in fields(group):
        if is_dataclass(field.type):
            yield from _options(field.type, without)
        elif field.name not in without:
            kind, default = Parameter.KEYWORD_ONLY, field.default
            yield Parameter(field.name, kind, annotation=field.type, default=default)


def _fill(group: Any, given: dict[str, Any], without: Collection[str]) -> Any:
    """Make a group from the user's values, and remove them from `given`."""
    made = {}
    for field in fields(group):
        if is_dataclass(field.type):
            made[field.name] = _fill(field.type, given, without)
        elif field.name not in without:
            made[field.name] = given.pop(field.name)
    return group(**made)


def several_tasks(named: Sequence[str], out: PurePath) -> list[str]:
    """Return the named tasks without duplicates; refuse tasks whose results would collide."""
    from c4.store.runs import find_recorded_tasks

    names = list(dict.fromkeys(named))
    if len(names) > 1:
        find_recorded_tasks(names, out)  # refuses two tasks whose results have one name
    return names


def choose_gates(
    names: Sequence[str],
    settings: Sequence[str] | None,
    task: "Task",
    frozen: "FrozenSetting | None" = None,
) -> "dict[str, Gate]":
    """Make gates by name, with the paper's settings for the task, the user's, or frozen ones."""
    from c4.replay.selection import GateChoice, require_gate

    for name in names:
        require_gate(name, task.name)
    return GateChoice(names, settings or (), [frozen] if frozen else ()).gates(task.family)


def nothing_found(place: PurePath, what: str) -> RunError:
    """Return the error for a folder that holds nothing to show or does not exist.

    Args:
        what: the purpose, as in `report` or `draw from`.
    """
    from c4.store.storage import file_exists, folder_exists

    found = f"nothing below {place} to {what}"
    if not folder_exists(place) and not file_exists(place):
        if place.suffix == ".parquet":  # what `c4 import` writes
            return RunError(f"{place}: no such file")
        found = f"{place}: no such folder"
    return RunError(f"{found}; start with: c4 record --task math")
