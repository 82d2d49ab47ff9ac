"""`c4 verify`."""

import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from c4.cli.options import (
    DecodeOptions,
    GateOption,
    GateSettingsOption,
    JsonOption,
    TasksOption,
    choose_gates,
    several_tasks,
    takes_options,
)
from c4.cli.output import say, say_json, show
from c4.cli.progress import progress, status
from c4.cli.tables import new_table
from c4.errors import C4Error
from c4.errors.text import counted

if TYPE_CHECKING:
    from c4.gates.gate import Gate
    from c4.models import LoadedModel
    from c4.record.plan import Plan, RunConfig
    from c4.record.recorder import Recording
    from c4.replay.verify import Check, Differences
    from c4.store.runs import Run

HELP = """Check on this machine that replay and live decoding agree.

The command records some examples, replays every gate over them, and then decodes the same examples
live under each gate. The exit step, every token of the final buffer and the grade must be
identical.

With --batch B, the command compares decoding B examples together with decoding each alone instead.
Sums of floating-point numbers depend on the shape of a forward pass, so some trajectories may
differ. The command counts those that differ in a token, in the exit step or in the answer.

Examples:

    c4 verify --task gsm8k --n 8

    c4 verify --task humaneval --n 4 --gate cvee --gate prophet

    c4 verify --task gsm8k --task mmlu --n 8 --batch 4
"""


@takes_options("n", "out", "resume", "graded")
def verify_command(
    *,
    task: TasksOption,
    n: Annotated[int, typer.Option(min=1, help="Number of examples of each task.")] = 8,
    gate: GateOption = None,
    settings: GateSettingsOption = None,
    decode: DecodeOptions,
    as_json: JsonOption = False,
) -> None:
    from c4.gates.gate import needs_future, require_live
    from c4.gates.registry import GATES
    from c4.tasks import find_task

    live = gate or [name for name, kind in GATES.items() if not needs_future(kind)]
    gates = {
        name: choose_gates(live, settings, find_task(name))
        for name in several_tasks(task, Path("runs"))
    }
    for chosen in (one for of_task in gates.values() for one in of_task.values()):
        require_live(chosen)
    with tempfile.TemporaryDirectory(prefix="c4-verify-") as scratch:
        out = Path(scratch)
        configs = {name: decode.config(name, n=n, out=out, graded=False) for name in gates}
        alone = all(config.batch == 1 for config in configs.values())
        compare = verify_replay if alone else verify_batch
        compare(configs, gates, as_json=as_json)


def verify_replay(
    configs: "Mapping[str, RunConfig]",
    gates: "Mapping[str, Mapping[str, Gate]]",
    *,
    as_json: bool,
) -> None:
    """Compare live decodes with the replay of a recording, and fail if any differs."""
    from c4.record.plan import plan_recording
    from c4.tasks import find_task
    from c4.tasks.grading import check_can_grade

    for task, config in configs.items():
        # The recording is not graded, but every exit is.
        check_can_grade(find_task(task), config.reading, unsafe_code=config.unsafe_code)
    plans = {task: plan_recording(config) for task, config in configs.items()}
    model = load(plans.values())
    from c4.record.recorder import start_recording  # loads torch: import only after the name checks
    from c4.replay.verify import verify

    checks: dict[str, list[Check]] = {}
    for task, plan in plans.items():
        with start_recording(plan, model) as recording:
            run, of_task = record(recording), checks.setdefault(task, [])
            live, unsafe_code = recording.decode_again, plan.config.unsafe_code
            with progress(
                f"decoding {plan.task.name} live", len(run) * len(gates[task])
            ) as advance:
                for check in verify(run, gates[task], live, unsafe_code=unsafe_code):
                    of_task.append(check)
                    advance(check.gate)
    every = [(task, check) for task, of_task in checks.items() for check in of_task]
    if as_json:
        say_json([{"task": task, **asdict(c), "agrees": c.agrees} for task, c in every])
    else:
        for task, of_task in checks.items():
            say(describe(plans[task], gates[task], of_task))
    if wrong := [(task, check) for task, check in every if not check.agrees]:
        raise C4Error("\n".join(differences(wrong)))


def describe(plan: "Plan", gates: "Mapping[str, Gate]", checks: "Sequence[Check]") -> str:
    """Say how many live decodes equal their replay, and how many the machine failed to grade."""
    agree = sum(check.agrees for check in checks)
    examples = counted(len({check.trajectory for check in checks}), "example")
    told = (
        f"{plan.task.name} on {plan.checkpoint.name}: {agree} of {len(checks)} live decodes "
        f"({examples} x {', '.join(gates)}) equal their replay in exit step, tokens and grade"
    )
    if failed := sum(check.grades_equal is None for check in checks):
        told += f"\n{failed} of them without a grade, because the machine failed to give one"
    return told


def differences(wrong: "Sequence[tuple[str, Check]]") -> "Iterator[str]":
    """Yield how each live decode differs, and advice on the user's own gates."""
    from c4.gates.registry import GATES
    from c4.store.labels import method_name

    peeking = []
    for task, check in wrong:
        live, replayed = check.live_steps, check.replayed_steps
        if live != replayed:
            what = f"it stops at step {live} in a decode, and at step {replayed} in the replay"
            if method_name(check.gate) not in GATES:
                peeking.append(check.gate)
        elif not check.tokens_equal:
            what = f"its tokens differ, although it stops at step {live} in both"
        else:
            what = "its grade differs, although its tokens are the same"
        yield f"{task}, trajectory {check.trajectory}, {check.gate}: {what}"
    for gate in dict.fromkeys(peeking):
        yield (
            f"{gate} looks at later steps, or remembers what it was asked before; if it must look "
            "ahead, set needs_future = True in it"
        )


def verify_batch(
    configs: "Mapping[str, RunConfig]",
    gates: "Mapping[str, Mapping[str, Gate]]",
    *,
    as_json: bool,
) -> None:
    """Record every task alone and in batches, and count what differs."""
    from c4.record.plan import plan_recording

    plans = {
        name: (
            plan_recording(replace(config, batch=1, out=config.out / "alone")),
            plan_recording(replace(config, out=config.out / "together")),
        )
        for name, config in configs.items()
    }
    model = load([together for _, together in plans.values()])
    from c4.record.recorder import start_recording
    from c4.replay.verify import compare_batches

    rows: list[Differences] = []
    for task, both in plans.items():
        runs = []
        for plan in both:
            with start_recording(plan, model) as recording:
                runs.append(record(recording))
        alone, together = runs
        rows += compare_batches(alone, together, gates[task])
    if as_json:
        say_json([asdict(row) for row in rows])
        return
    names = ("task", "batch", "gate", "trajectories", "other tokens", "other exit", "other answer")
    table = new_table(*names)
    for row in rows:
        table.add_row(*map(str, asdict(row).values()))
    show(table)


def load(plans: "Iterable[Plan]") -> "LoadedModel":
    """Load the model that all plans share."""
    from c4.record.plan import load_planned

    first = next(iter(plans))
    with status(f"loading {first.checkpoint.name}"):
        return load_planned(first)


def record(recording: "Recording") -> "Run":
    """Record the missing examples, and open the run."""
    from c4.store.runs import open_run

    plan = recording.plan
    together = f" in batches of {plan.batch}" if plan.batch != 1 else ""
    with progress(f"recording {plan.task.name}{together}", total=len(recording)) as advance:
        for _ in recording:
            advance()
    return open_run(plan.folder, plan.config.reading, [plan.task])
