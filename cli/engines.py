"""The options that say who does the work, and the one way in which commands have it done."""

import logging
import platform
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, nullcontext
from dataclasses import asdict, replace
from functools import wraps
from inspect import Parameter, Signature, signature
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.live import Live
from rich.text import Text

from c4.cli.complete import complete_engine
from c4.cli.output import console, say, say_json
from c4.cli.progress import SECONDS_BETWEEN_LINES, progress, status
from c4.errors import ConfigError, RunError
from c4.errors.text import counted, visible_json, visible_line

if TYPE_CHECKING:
    from c4.record.engines import DecodeJob, EngineChoice, GradeJob, Job
    from c4.record.plan import Plan, RunConfig
    from c4.store.locations import Location
    from c4.store.progress import Progress, ProgressWatch
    from c4.store.runs import Run

log = logging.getLogger(__name__)

EngineAnswers = Mapping[str, Any]
"""What a user said about engines, by the names of `ENGINE_OPTIONS`."""
SECONDS_BETWEEN_LOOKS = 2.0
SECONDS_FOR_A_WORKER = 30.0
"""How long somebody who watches runs waits for the first worker, which may be loading a model."""

ENGINE_OPTIONS: dict[str, tuple[Any, Any]] = {
    "engine": (
        Annotated[
            str | None,
            typer.Option(
                autocompletion=complete_engine,
                help="Start workers: local (processes, one for each GPU), ray or slurm. "
                "[default: this process works alone]",
            ),
        ],
        None,
    ),
    "workers": (
        Annotated[
            int | None,
            typer.Option(min=1, help="Number of workers. [default: one for each GPU]"),
        ],
        None,
    ),
    "ray_address": (
        Annotated[
            str | None,
            typer.Option(help="Address of a Ray cluster. [default: one is started here]"),
        ],
        None,
    ),
    "slurm": (
        Annotated[
            list[str] | None,
            typer.Option(
                metavar="NAME=VALUE",
                help="A setting of the Slurm jobs, such as partition=gpu or timeout_min=720; "
                "cluster=local tries it without Slurm. May be given several times.",
            ),
        ],
        None,
    ),
}
"""Annotation and default of every option that says who works."""


def takes_engine_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options of engines to a command, which gets them as its argument `engines`."""
    own = [p for p in signature(command).parameters.values() if p.name != "engines"]
    shared = [
        Parameter(name, Parameter.KEYWORD_ONLY, annotation=kind, default=default)
        for name, (kind, default) in ENGINE_OPTIONS.items()
    ]

    @wraps(command)
    def wrapped(**given: Any) -> None:
        asked = {name: given.pop(name) for name in ENGINE_OPTIONS}
        command(engines=asked, **given)

    parameters = [*(p.replace(kind=Parameter.KEYWORD_ONLY) for p in own), *shared]
    wrapped.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
    wrapped.__annotations__ = {p.name: p.annotation for p in parameters}
    return wrapped


def choose_engine(asked: Mapping[str, Any], device: str = "auto") -> "EngineChoice":
    """The engine that a user wants."""
    from c4.record.engines.choice import EngineChoice

    settings = {}
    for setting in asked["slurm"] or ():
        name, equals, value = setting.partition("=")
        if not (name and equals and value):
            raise ConfigError(f"--slurm {setting}: give NAME=VALUE, such as partition=gpu")
        settings[name] = value
    return EngineChoice(asked["engine"], asked["workers"], device, asked["ray_address"], settings)


def for_engine(choice: "EngineChoice", config: "RunConfig") -> "RunConfig":
    """A configuration as this process is to plan it."""
    from c4.record.ranks import read_rank

    if choice.is_remote:
        return replace(config, elsewhere=True)
    if choice.name is not None:
        return replace(config, device=config.device.partition(",")[0])
    rank = read_rank()
    if rank.size > 1:
        if config.fresh:
            raise ConfigError(
                "--fresh deletes a run, which one of several processes would do to the others; "
                "give the command to one process first"
            )
        import torch

        return replace(config, device=rank.device(config.device, torch.cuda.device_count()))
    return config


def decode_job(choice: "EngineChoice", job: "DecodeJob", *, as_json: bool) -> None:
    """Have examples decoded by an engine, or decode them here."""
    if choice.name is not None:
        decode_with_engine(choice, job, as_json=as_json)
    else:
        decode_here(job.plans)


def decode_here(plans: "Sequence[Plan]") -> None:
    """Decode the missing examples of every plan in this process, loading the model once."""
    from c4.record.plan import load_planned
    from c4.record.ranks import read_rank
    from c4.record.recorder import start_recording
    from c4.store.claims import Sign

    rank = read_rank()
    quiet = not rank.reports
    with nullcontext() if quiet else status(f"loading {plans[0].checkpoint.name}"):
        loaded = load_planned(plans[0])
    for plan in plans:
        place = f"{platform.node()} {plan.device}"
        sign = Sign(place=place, engine=f"rank {rank.number}" if quiet else "")
        with start_recording(plan, loaded, sign) as recording, ExitStack() as stack:
            total = len(plan.sample_set.samples)
            log.info("%s: %d of %d examples to decode", plan.folder, len(recording), total)
            if not recording and not quiet:
                say(f"{plan.folder}: all {total} examples are there; nothing to decode", err=True)
            title = f"{plan.checkpoint.name} {plan.task.name} {plan.folder.name}"
            advance = stack.enter_context(progress(title, len(recording))) if not quiet else None
            for row in recording:
                if advance is not None:
                    advance(f"{row.steps} steps in {row.wall_seconds:.2f} s")


def grade_with_engine(
    choice: "EngineChoice", run: "Run", job: "GradeJob", *, as_json: bool
) -> None:
    """Have answers graded by an engine's workers."""
    from c4.record.regrade import GradingWatch
    from c4.tasks.grading import check_can_grade

    check_can_grade(run.task, run.reading, unsafe_code=job.unsafe_code)
    wanted = {row.trajectory for row in run.rows() if job.everything or row.correct is None}
    watch = GradingWatch(run, wanted, job.since)
    supervise(choice, job, [watch], as_json=as_json, on_gpu=False)


def decode_with_engine(choice: "EngineChoice", job: "DecodeJob", *, as_json: bool) -> None:
    """Have examples decoded, and show how far all workers together are."""
    from c4.record.recorder import check_recorded
    from c4.store.manifest import is_run
    from c4.store.progress import ProgressWatch
    from c4.store.writer import RunWriter

    for plan in job.plans:
        if is_run(plan.folder):
            with RunWriter(plan.folder) as writer:
                if plan.config.fresh:
                    writer.clear()
                else:
                    writer.claims.retry_aside()
            if not plan.config.fresh:
                check_recorded(plan)
    watches = [
        ProgressWatch(plan.folder, {sample.index for sample in plan.sample_set.samples})
        for plan in job.plans
    ]
    supervise(choice, job.for_workers(), watches, as_json=as_json)


def supervise(
    choice: "EngineChoice",
    job: "Job",
    watches: "Sequence[ProgressWatch]",
    *,
    as_json: bool,
    on_gpu: bool = True,
) -> None:
    """Keep workers at a job until it is done, with progress on stderr."""
    from c4.record.engines import Supervisor, open_engine

    engine = open_engine(choice, on_gpu=on_gpu)
    with WorkerLines(as_json=as_json) as lines:
        shown = Looks(watches, lines.show)
        Supervisor(engine, job, shown.count).run()


class WorkerLines:
    """Shows the progress of runs: on a terminal in place, elsewhere as occasional lines.

    Args:
        as_json: as a line of JSON for every run and look.
        on_stdout: where the progress is the result.
    """

    def __init__(self, *, as_json: bool, on_stdout: bool = False) -> None:
        self.as_json = as_json
        self.on_stdout = on_stdout
        live = not as_json and console.is_terminal
        self._live = Live(console=console, transient=True) if live else None
        self._last = float("-inf")

    def __enter__(self) -> "WorkerLines":
        if self._live:
            self._live.start()
        return self

    def __exit__(self, *exc: object) -> None:
        if self._live:
            self._live.stop()

    def show(self, found: "Sequence[Progress]") -> None:
        lines = [visible_line(progress_line(progress)) for progress in found]
        if self.as_json:
            lines = [visible_json(asdict(progress)) for progress in found]
        elif self._live:
            self._live.update(Text("\n".join(lines)))
            return
        elif time.monotonic() - self._last < SECONDS_BETWEEN_LINES:
            return
        self._last = time.monotonic()
        for line in lines:
            say(line, err=not self.on_stdout)


class Looks:
    """Looks at runs every now and then, and shows what it sees."""

    def __init__(
        self, watches: "Sequence[ProgressWatch]", show: "Callable[[Sequence[Progress]], None]"
    ) -> None:
        self.watches = watches
        self.show = show
        self._next = 0.0
        self._counted = 0

    def count(self) -> int:
        """How much is done or given up, as of the last look."""
        now = time.monotonic()
        if now >= self._next:
            found = [watch.look() for watch in self.watches]
            self.show(found)
            self._counted = sum(one.done + len(one.aside) for one in found)
            took = time.monotonic() - now  # a large run takes long to list
            self._next = time.monotonic() + max(SECONDS_BETWEEN_LOOKS, 10 * took)
        return self._counted


def require_none_aside(plans: "Sequence[Plan]") -> None:
    """Say which examples nobody could decode, if any."""
    from c4.record.recorder import set_aside

    lines = [
        f"{plan.folder}: example {number}: {why}"
        for plan in plans
        for number, why in set_aside(plan).items()
    ]
    if lines:
        raise RunError("\n".join(["set aside, and tried again by the same command:", *lines]))


def watch_runs(root: "Location", *, as_json: bool) -> None:
    """Show how far the runs below a folder are, from the first worker on until none is left."""
    from c4.store.progress import ProgressWatch
    from c4.store.runs import find_runs

    watches: dict[Location, ProgressWatch] = {}
    began, seen, told = time.monotonic(), False, False
    with WorkerLines(as_json=as_json, on_stdout=True) as lines:
        while True:
            for folder in find_runs(root):
                watches.setdefault(folder, ProgressWatch(folder))
            busy = [one for one in (watch.look() for watch in watches.values()) if one.workers]
            if busy:
                lines.show(busy)
            elif seen or (watches and time.monotonic() - began > SECONDS_FOR_A_WORKER):
                break
            elif not told:
                say(waiting_line(root, len(watches)), err=True)
                told = True
            seen = seen or bool(busy)
            time.sleep(SECONDS_BETWEEN_LOOKS)
    if as_json:
        say_json({"runs": len(watches), "workers": 0})
    else:
        say("nobody works on these runs any more" if seen else f"nobody works on runs below {root}")


def waiting_line(root: "Location", runs: int) -> str:
    """What somebody is told who watches before anybody works."""
    if not runs:
        return f"no run below {root} yet; waiting for one (Ctrl-C ends this)"
    seconds = f"{SECONDS_FOR_A_WORKER:.0f} s"
    return (
        f"nobody works on the {counted(runs, 'run')} below {root}; waiting {seconds} for a worker"
    )


def progress_line(progress: "Progress") -> str:
    """A run's progress in a line."""
    where = "/".join(progress.folder.parts[-3:])
    parts = [f"{where}: {progress.done} of {progress.wanted}", workers_line(progress)]
    if progress.per_minute:
        parts.append(f"{progress.per_minute:.1f} a minute")
    if progress.eta_seconds:
        parts.append(f"{progress.eta_seconds / 60:.0f} min left")
    if progress.failures:
        last = list(progress.failures.values())[-1]
        parts.append(f"{len(progress.failures)} died, the last: {last}")
    if progress.aside:
        parts.append(f"{len(progress.aside)} set aside")
    return ", ".join(parts)


def workers_line(progress: "Progress") -> str:
    """Who works on a run; once nothing is left to do, nobody needs to."""
    if progress.workers:
        return counted(progress.workers, "worker")
    return "no worker" if progress.left else "done"
