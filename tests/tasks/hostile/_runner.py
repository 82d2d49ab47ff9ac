"""Running hostile programs, in the sandbox and, as a control, in places that do less."""

import subprocess
import sys
import tempfile
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from unittest.mock import patch

from c4.tasks.sandbox import run as sandbox_run
from c4.tasks.sandbox.run import Limits, Outcome, RunEnd, run_program
from hostile._program import Hostile

LIMITS = Limits(
    wall_seconds=2, cpu_seconds=1, memory_bytes=256 * 2**20, output_bytes=2**16, file_bytes=2**20
)


def passes_in_one_process(hostile: Hostile) -> bool:
    """Whether a grader that runs program and tests in one process would call this a pass."""
    whole = f"{hostile.preamble}\n{hostile.program}\n{hostile.tests}"
    command = [sys.executable, "-c", whole]
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(command, cwd=folder, capture_output=True, timeout=60)
    return done.returncode == 0


def run_hostile(hostile: Hostile, limits: Limits = LIMITS) -> Outcome:
    """How a program ends in the sandbox; a machine that is too busy to tell gets more time."""
    for patience in (1, 4, 16):
        outcome = run_program(
            hostile.preamble,
            hostile.program,
            hostile.tests,
            reference=hostile.reference,
            limits=replace(limits, wall_seconds=patience * limits.wall_seconds),
        )
        if outcome.verdict is not RunEnd.MACHINE:
            break
    return outcome


def passes_without_wall(hostile: Hostile) -> bool:
    """Whether the program passes where nothing is isolated; only for what does no harm."""
    with patch.object(sandbox_run, "_what_is_missing", lambda: "asked to do without"):
        outcome = run_program("", hostile.program, hostile.tests, unsafe=True)
    return outcome.verdict is RunEnd.PASSED


def blames_without_filter(hostile: Hostile) -> bool:
    """Whether the program passes for a failure of the machine where its own filter is missing."""
    filtering = "refuse_calls(only_the_machine(os.getpid()))"
    source = sandbox_run._CHILD.read_text(encoding="utf-8")
    assert filtering in source
    with tempfile.TemporaryDirectory() as folder:
        child = Path(folder, sandbox_run._CHILD.name)
        child.write_text(source.replace(filtering, "pass"), encoding="utf-8")
        with patch.object(sandbox_run, "_CHILD", child):
            outcome = run_program("", hostile.program, hostile.tests, limits=LIMITS)
    return outcome.verdict is RunEnd.MACHINE


def survivors(parent: int) -> list[int]:
    """Sandbox processes that `parent` started, or adopted, and that still live."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            line = (folder / "cmdline").read_bytes()
            child = int((folder / "stat").read_text().rpartition(")")[2].split()[1]) == parent
            marked = b"sandbox/child.py" in line
            if marked and (child or f'"parent": {parent}'.encode() in line):
                found.append(int(folder.name))
    return found
