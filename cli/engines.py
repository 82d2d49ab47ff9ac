"""Decode and grade examples for commands, in this process or with an engine's workers."""

import io
import logging
from collections.abc import Sequence
from contextlib import nullcontext, redirect_stderr
from typing import TYPE_CHECKING

import typer

from c4.cli.output import complain, say
from c4.cli.progress import progress, status
from c4.cli.watch import RunsShown
from c4.errors import C4Error, RunError

if TYPE_CHECKING:
    from c4.record.engines import EngineChoice
    from c4.record.plan import Plan
    from c4.record.progress import ProgressWatch
    from c4.store.runs import Run

log = logging.getLogger(__name__)

WORDS = "c4.words"
"""Key in a command context's `meta` for the words that the user typed after `c4`."""


def decode_plans(
    ctx: typer.Context, choice: "EngineChoice", plans: "Sequence[Plan]", *, as_json: bool
) -> bool:
    """Decode the examples that runs lack, here or with an engine's workers.

    Returns whether this process reports the results; of several processes, only one does.
    """
    from c4.record.engines.worker import this_worker
    from c4.record.progress import ProgressWatch
    from c4.record.recorder import prepare_for_workers

    if choice.name is None:
        _decode_here(plans)
    else:
        prepare_for_workers(plans)
        watches = [ProgressWatch(plan.folder, plan.wanted) for plan in plans]
        _start_workers(ctx, choice, watches, as_json=as_json)
    return this_worker().reports


def _decode_here(plans: "Sequence[Plan]") -> None:
    """Decode the missing examples of every plan in this process, loading the model once."""
    from c4.record.engines.worker import FAILED, this_worker
    from c4.record.plan import load_planned
    from c4.record.recorder import start_recording

    worker = this_worker()
    with status(f"loading {plans[0].checkpoint.name}") if worker.reports else nullcontext():
        loaded = load_planned(plans[0])
    for plan in plans:
        with start_recording(plan, loaded, worker.sign(plan.device)) as recording:
            try:
                total, missing = len(plan.wanted), len(recording)
                log.info("%s: %d of %d examples to decode", plan.folder, missing, total)
                if not missing and worker.reports:
                    done = f"{plan.folder}: all {total} examples are there; nothing to decode"
                    say(done, err=True)
                title = f"{plan.checkpoint.name} {plan.task.name} {plan.folder.name}"
                with progress(title, missing, quiet=not worker.reports) as advance:
                    for row in recording:
                        advance(f"{row.steps} steps in {row.wall_seconds:.2f} s")
            except Exception as error:
                # Any worker would fail with the same C4Error, unless it concerns one example only.
                alone = recording.writer.claims.failed or not isinstance(error, C4Error)
                if worker.device is None or not alone:
                    raise
                complain(f"{type(error).__name__}: {error}")
                raise typer.Exit(FAILED) from error


def grade_run(
    ctx: typer.Context,
    choice: "EngineChoice",
    run: "Run",
    *,
    everything: bool,
    unsafe_code: bool,
    as_json: bool,
) -> bool:
    """Grade the answers of a run, here or with an engine's workers.

    Returns whether this process reports the results; of several processes, only one does.
    """
    from c4.record.engines.worker import this_worker
    from c4.record.regrade import GradingWatch, regrade
    from c4.store.grades import newest_grade

    worker = this_worker()
    if choice.name is not None:
        wanted = {row.trajectory for row in run.rows() if everything or row.correct is None}
        since = newest_grade(run.folder, run.manifest.digest)
        watches = [GradingWatch(run, wanted, since)]
        _start_workers(ctx, choice, watches, as_json=as_json, on_gpu=False, since=since)
        return worker.reports
    grades = regrade(
        run.folder,
        run.reading,
        tasks=run.tasks,
        everything=everything,
        unsafe_code=unsafe_code,
        since=worker.since,
        sign=worker.sign(),
    )
    with progress(f"grading {run.folder}", len(run), quiet=not worker.reports) as advance:
        for _ in grades:
            advance()
    return worker.reports


def _start_workers(
    ctx: typer.Context,
    choice: "EngineChoice",
    watches: "Sequence[ProgressWatch]",
    *,
    as_json: bool,
    on_gpu: bool = True,
    since: int | None = None,
) -> None:
    """Start workers that repeat this command until no work is left; show progress on stderr."""
    from c4.record.engines import open_engine, supervise
    from c4.record.engines.worker import Command

    command = Command(ctx.find_root().meta[WORDS], give_again)
    engine = open_engine(choice, command, on_gpu=on_gpu)
    with RunsShown(as_json=as_json) as shown:
        supervise(engine, [w.folder for w in watches], lambda: shown.count(watches), since)


def give_again(words: Sequence[str]) -> tuple[int, str]:
    """Run a command in this process; return its exit code and its output on stderr."""
    from c4.cli.app import app
    from c4.record.engines.worker import FAILED

    said = io.StringIO()
    with redirect_stderr(said):
        try:
            code = app(list(words), standalone_mode=False) or 0
        except Exception as error:
            complain(f"{type(error).__name__}: {error}")
            code = FAILED
    say(said.getvalue(), err=True)  # an engine may keep it as a log
    return code, said.getvalue()


def require_none_aside(plans: "Sequence[Plan]") -> None:
    """Raise an error that lists the examples that no worker could decode, if any."""
    from c4.record.recorder import set_aside

    lines = [
        f"{plan.folder}: example {number}: {why}"
        for plan in plans
        for number, why in set_aside(plan).items()
    ]
    if lines:
        raise RunError("\n".join(["set aside, and tried again by the same command:", *lines]))
