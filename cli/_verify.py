"""`c4 verify`."""

import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from c4.cli._decode import DecodeOptions, JsonOption, TaskOption, takes_decode_options
from c4.cli._gates import GateOption, SetOption, choose_gates
from c4.cli._output import say, say_json
from c4.cli._progress import progress
from c4.errors import C4Error

HELP = """Check on this machine that replay and live decoding agree.

The command records some examples, replays every gate over them, and then decodes the same examples
live under each gate. The exit step, every token of the final buffer and the grade must be
identical.

Examples:

    c4 verify --task gsm8k --n 8

    c4 verify --task humaneval --n 4 --gate cvee --gate prophet
"""


@takes_decode_options("n", "out", "resume", "grade")
def verify_command(
    task: TaskOption,
    decode: DecodeOptions,
    n: Annotated[int, typer.Option(min=1, help="Number of examples.")] = 8,
    gate: GateOption = None,
    settings: SetOption = None,
    as_json: JsonOption = False,
) -> None:
    from c4.gates.kinds import GATES, as_gate, require_live
    from c4.record.plan import plan_recording
    from c4.store.runs import open_run
    from c4.tasks import get_task
    from c4.tasks.grading import check_can_grade

    names = gate or [name for name, kind in GATES.items() if not kind.needs_future]
    gates = choose_gates(names, settings, get_task(task))
    for chosen in gates.values():
        require_live(as_gate(chosen))
    checks = []
    with tempfile.TemporaryDirectory(prefix="c4-verify-") as scratch:
        asked = decode.config(task, n=n, out=Path(scratch), graded=False)
        unsafe_code = asked.unsafe_code
        # The recording is not graded, but every exit is.
        check_can_grade(get_task(task), asked.reading, unsafe_code=unsafe_code)
        plan = plan_recording(asked)
        from c4.record.recorder import start_recording  # loads torch: after names are checked
        from c4.record.verify import verify

        with start_recording(plan) as recording:
            with progress(f"recording {task}", total=n) as advance:
                for _ in recording:
                    advance()
            run = open_run(plan.folder, asked.reading)
            with progress("decoding live", total=n * len(gates)) as advance:
                for check in verify(run, gates, recording.decode_again, unsafe_code=unsafe_code):
                    checks.append(check)
                    advance(check.gate)
    wrong = [check for check in checks if not check.agrees]
    if as_json:
        say_json([asdict(check) | {"agrees": check.agrees} for check in checks])
    else:
        say(
            f"{task} on {plan.checkpoint.name}: {len(checks) - len(wrong)} of {len(checks)} live "
            f"decodes ({n} examples x {', '.join(gates)}) equal their replay in exit step, "
            "tokens and grade"
        )
        if failed := sum(check.grades_equal is None for check in checks):
            say(f"{failed} of them without a grade, because the machine failed to give one")
    if wrong:
        raise C4Error("\n".join(f"differs: {check}" for check in wrong))
