"""`c4 record`."""

import json
import logging
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from c4.cli._decode import (
    BlockOption,
    DecodedModelOption,
    DeviceOption,
    DtypeOption,
    GradedOption,
    JsonOption,
    LengthOption,
    ResumeOption,
    RevisionOption,
    SeedOption,
    SkipOption,
    SourceOption,
    StepsOption,
    UnsafeOption,
)
from c4.cli._progress import progress, status
from c4.cli._reading import EndingOption, ReadingOption, choose_reading

if TYPE_CHECKING:
    from c4.record import RunSummary

log = logging.getLogger(__name__)

HELP = """Decode a task at full budget and record every step.

The run is written to OUT/model=MODEL/task=TASK. If it is there already, only what is missing is
decoded; interrupt it whenever you like and give the same command again. How answers are read
matters to the grades alone, and other commands may read them otherwise.

Examples:

    c4 record --task math

    c4 record --task gsm8k --n 40 --skip 0 --seed 0 --out runs

    c4 record --task humaneval --model llada --device cuda

    c4 record --task mmlu --model ./my-checkpoint --source mmlu.jsonl --gen-length 64 --steps 64
"""


def record_command(
    task: Annotated[str, typer.Option(help="One of `c4 tasks`.")],
    model: DecodedModelOption = "tiny",
    n: Annotated[
        int | None, typer.Option(min=1, help="Examples to decode. [default: the paper's]")
    ] = None,
    skip: SkipOption = None,
    seed: SeedOption = 0,
    source: SourceOption = None,
    gen_length: LengthOption = None,
    steps: StepsOption = None,
    block_length: BlockOption = None,
    device: DeviceOption = "auto",
    dtype: DtypeOption = "auto",
    revision: RevisionOption = None,
    out: Annotated[Path, typer.Option(help="Folder of all recordings.")] = Path("runs"),
    resume: ResumeOption = True,
    graded: GradedOption = True,
    reading: ReadingOption = None,
    ending: EndingOption = None,
    unsafe_code: UnsafeOption = False,
    as_json: JsonOption = False,
) -> None:
    # Torch takes seconds to import; a command that does not decode should not wait for it.
    from c4.record import RecordConfig, plan_recording, start_recording, summarise

    read_as = choose_reading(reading, ending)
    plan = plan_recording(
        RecordConfig(
            task=task,
            model=model,
            revision=revision,
            source=source,
            n=n,
            skip=skip,
            seed=seed,
            length=gen_length,
            steps=steps,
            block=block_length,
            device=device,
            dtype=dtype,
            out=out,
            fresh=not resume,
            graded=graded,
            unsafe_code=unsafe_code,
            reading=read_as,
        )
    )
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
    summary = summarise(plan.folder, wanted, read_as)
    typer.echo(json.dumps(asdict(summary), default=str) if as_json else render(summary))


def render(summary: "RunSummary") -> str:
    """One line: what was recorded, how well it went, and where it is."""
    accuracy = "not graded" if summary.accuracy is None else f"accuracy {summary.accuracy:.1%}"
    if 0 < summary.graded < summary.trajectories:
        accuracy += f" of the {summary.graded} graded"
    return (
        f"{summary.task} on {summary.model} (source={summary.source}): "
        f"{summary.trajectories} trajectories, {accuracy}, {summary.steps:g} steps each, "
        f"{summary.wall_seconds:.1f} s decoding, {summary.bytes:,} bytes -> {summary.folder}"
    )
