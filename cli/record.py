"""`c4 record`."""

import logging
from dataclasses import asdict
from typing import TYPE_CHECKING

import typer

from c4.cli.engines import decode_plans, require_none_aside
from c4.cli.options import (
    DecodeOptions,
    EngineOptions,
    JsonOption,
    TaskOption,
    several_tasks,
    takes_options,
)
from c4.cli.output import say, say_json
from c4.errors import ConfigError
from c4.errors.text import counted

if TYPE_CHECKING:
    from c4.store.summary import RunSummary

log = logging.getLogger(__name__)

HELP = """Decode a task at full budget and record every step.

The run is written to OUT/model=MODEL/task=TASK/method=baseline. If it already exists, only missing
examples are decoded, so you can interrupt the command at any time and give it again. How answers
are read affects only the grades; other commands may read the same recording in another way.
Given in several terminals or on several machines, the command shares the work; so does --engine.

Examples:

    c4 record --task math

    c4 record --task gsm8k --n 40 --skip 0 --seed 0 --out runs

    c4 record --task humaneval --model llada --device cuda

    c4 record --task gsm8k --model llada --engine local --device cuda:0,cuda:1

    c4 record --task mmlu --model ./my-checkpoint --source mmlu.jsonl --gen-length 64 --steps 64
"""


@takes_options()
def record_command(
    *,
    task: TaskOption,
    decode: DecodeOptions,
    ctx: typer.Context,
    engines: EngineOptions,
    as_json: JsonOption = False,
) -> None:
    from c4.record.plan import plan_recording
    from c4.store.summary import summarise

    name, *others = several_tasks(task, decode.out)
    if others:
        raise ConfigError(
            f"--task {name} --task {others[0]}: one task is recorded at a time; give the command "
            "once for each"
        )
    choice = engines.choose(decode.device)
    plan = plan_recording(choice.config(decode.config(name)))
    if plan.sample_set.left_out:
        log.warning("%d rows that %s cannot use are left out", plan.sample_set.left_out, name)
    if not decode_plans(ctx, choice, [plan], as_json=as_json):
        return
    summary = summarise(plan.folder, plan.wanted, plan.config.reading)
    if as_json:
        say_json(asdict(summary))
    else:
        say(render(summary))
    require_none_aside([plan])


def render(summary: "RunSummary") -> str:
    """Return one line with what was recorded, its accuracy, and its folder."""
    accuracy = "not graded" if summary.accuracy is None else f"accuracy {summary.accuracy:.1%}"
    if 0 < summary.graded < summary.n:
        accuracy += f" of the {summary.graded} graded"
    if summary.not_gradable:
        accuracy += f", {summary.not_gradable} not gradable (c4 grade tries them again)"
    together = f" in batches of {summary.batch}" if summary.batch > 1 else ""
    return (
        f"{summary.task} on {summary.model} (source={summary.source}): "
        f"{counted(summary.n, 'trajectory')}, {accuracy}, {summary.steps:g} steps each, "
        f"{summary.wall_seconds:.1f} s decoding{together}, {summary.bytes:,} bytes -> "
        f"{summary.folder}"
    )
