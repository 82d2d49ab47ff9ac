"""`c4 record`."""

import logging
from contextlib import ExitStack
from dataclasses import asdict
from typing import TYPE_CHECKING

from c4.cli._decode import DecodeOptions, JsonOption, TaskOption, takes_decode_options
from c4.cli._output import say, say_json
from c4.cli._progress import progress, status

if TYPE_CHECKING:
    from c4.store.summary import RunSummary

log = logging.getLogger(__name__)

HELP = """Decode a task at full budget and record every step.

The run is written to OUT/model=MODEL/task=TASK/method=baseline. If it already exists, only missing
examples are decoded, so you can interrupt the command at any time and give it again. How answers
are read affects only the grades; other commands may read the same recording in another way.

Examples:

    c4 record --task math

    c4 record --task gsm8k --n 40 --skip 0 --seed 0 --out runs

    c4 record --task humaneval --model llada --device cuda

    c4 record --task mmlu --model ./my-checkpoint --source mmlu.jsonl --gen-length 64 --steps 64
"""


@takes_decode_options()
def record_command(task: TaskOption, decode: DecodeOptions, as_json: JsonOption = False) -> None:
    from c4.record.plan import plan_recording
    from c4.store.summary import summarise

    plan = plan_recording(decode.config(task))
    from c4.record.recorder import start_recording  # loads torch, so after the names are checked

    model = plan.checkpoint.name
    wanted = {sample.index for sample in plan.sample_set.samples}
    if plan.sample_set.left_out:
        log.warning("%d rows that %s cannot use are left out", plan.sample_set.left_out, task)
    with ExitStack() as stack:
        with status(f"loading {model}"):
            recording = stack.enter_context(start_recording(plan))
        log.info("%d of %d trajectories to decode", len(recording), len(wanted))
        advance = stack.enter_context(progress(f"{model} {task}", len(recording)))
        for row in recording:
            advance(f"{row.wall_seconds:.2f} s each")
    summary = summarise(plan.folder, wanted, plan.config.reading)
    if as_json:
        say_json(asdict(summary))
    else:
        say(render(summary))


def render(summary: "RunSummary") -> str:
    """One line: what was recorded, how well it went, and where it is."""
    accuracy = "not graded" if summary.accuracy is None else f"accuracy {summary.accuracy:.1%}"
    if 0 < summary.graded < summary.n:
        accuracy += f" of the {summary.graded} graded"
    if summary.not_gradable:
        accuracy += f", {summary.not_gradable} not gradable (c4 grade tries them again)"
    together = f" in batches of {summary.batch}" if summary.batch > 1 else ""
    return (
        f"{summary.task} on {summary.model} (source={summary.source}): "
        f"{summary.n} trajectories, {accuracy}, {summary.steps:g} steps each, "
        f"{summary.wall_seconds:.1f} s decoding{together}, {summary.bytes:,} bytes -> "
        f"{summary.folder}"
    )
