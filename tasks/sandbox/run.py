"""Run a model-written program and its tests; say whether the tests passed.

It takes four processes, so that the program cannot forge a pass and a failure of the machine is not
blamed on the program:

- *this process* starts a fresh interpreter (`child.py`), watches time and output, and judges;
- *the supervisor*, that interpreter, makes the sandbox and reports how the examiner ends;
- *the examiner*, pid 1 inside, runs the tests and alone can write the verdict;
- *the candidate*, its child, runs the program and answers calls.

See docs/sandbox.md for what this guarantees and what it does not.
"""

import json
import os
import selectors
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from contextlib import ExitStack, nullcontext, suppress
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from functools import cache
from pathlib import Path

from c4.errors import ConfigError, SandboxError
from c4.tasks.sandbox.entry_points import names_of_tests
from c4.tasks.sandbox.processes import Standing, look_at

_CHILD = Path(__file__).with_name("child.py")


class RunEnd(StrEnum):
    """How a run ended. Only `PASSED` is a pass; all but `MACHINE` are the program's own doing."""

    PASSED = "passed"
    FAILED = "failed"  # its answers did not satisfy the tests
    CRASHED = "crashed"  # an exception, a syntax error, an early exit, a signal
    TIMEOUT = "timeout"  # wall clock or CPU time
    LIMIT = "limit"  # memory or output
    MACHINE = "machine"  # the machine failed, and nothing is known about the program


@dataclass(frozen=True)
class Outcome:
    verdict: RunEnd
    detail: str = ""
    """One printable line for a human; never parse it."""


@dataclass(frozen=True, kw_only=True)
class Limits:
    """What one run may use, checked on construction."""

    wall_seconds: float = 30.0
    cpu_seconds: int = 15
    """Per process. One of MBPP's own solutions takes five on an idle machine."""
    memory_bytes: int = 512 * 2**20
    """Address space, per process."""
    output_bytes: int = 2**20
    """Standard output and error together."""
    processes: int = 8
    """The program's processes and threads together."""
    file_bytes: int = 16 * 2**20
    """Per file; with isolation, for the whole scratch folder."""

    def __post_init__(self) -> None:
        for name, value in asdict(self).items():
            if value <= 0:
                raise ConfigError(f"{name} must be more than 0, not {value}")


DEFAULT_LIMITS = Limits()
BEGUN = b'["begun"]\n'
"""Report line of the examiner once the program's process is ready."""
TICK = 0.5
"""Maximum seconds between two checks of the clock."""
ITS_OWN_DOING = {signal.SIGSEGV, signal.SIGABRT, signal.SIGFPE, signal.SIGILL, signal.SIGSYS}
"""Signals that can only have ended the examiner because of the program's answers."""
NO_LIBRARIES: Mapping[str, Path] = {}


def can_isolate() -> bool:
    """Whether this machine can isolate programs, found by one trial run."""
    return not _what_is_missing()


def require_isolation() -> None:
    """Raise SandboxError if programs cannot be isolated."""
    if missing := _what_is_missing():
        raise SandboxError(
            f"code written by a model cannot be isolated here ({missing}), so it is not run; "
            "use a Linux machine that allows user namespaces, "
            "or accept the risk with --unsafe-code"
        )


def run_program(
    preamble: str,
    program: str,
    tests: str,
    *,
    reference: str = "",
    limits: Limits = DEFAULT_LIMITS,
    unsafe: bool = False,
    libraries: Mapping[str, Path] = NO_LIBRARIES,
) -> Outcome:
    """Run `tests` on `program`, which follows `preamble` in one module.

    Args:
        preamble: Trusted, like the tests; names that it defines are not taken from the program.
        reference: A program that passes, if there is one. It tells which names the tests take
            from the program; see `names_of_tests`.
        libraries: Folders of packages, by name, that the program may read and import besides
            Python's own.
        unsafe: Run even if programs cannot be isolated here. No effect if they can.
    """
    if not unsafe:
        require_isolation()
    names = names_of_tests(tests, preamble, reference)
    job = _Job(
        sources=[preamble, program],
        tests=f"{names.imports}{tests}",
        entry_points=sorted(names.entry_points),
        limits=limits,
        isolated=can_isolate(),
        libraries=libraries,
    )
    try:
        return _run(job)
    except _NoIsolation as error:  # it worked in the trial run
        return Outcome(RunEnd.MACHINE, str(error))


class _NoIsolation(Exception):  # noqa: N818 - not always a mistake
    """The sandbox could not be made."""


@cache
def _what_is_missing() -> str:
    """Reason why programs cannot be isolated here; empty if they can.

    Raise SandboxError if the machine fails the trial run; the next call repeats the trial.
    """
    if not sys.platform.startswith("linux"):
        return f"no namespaces on {sys.platform}"
    try:
        outcome = _run(_Job(["", "ok = True"], "assert ok", ["ok"], DEFAULT_LIMITS, isolated=True))
    except _NoIsolation as error:
        return str(error)
    if outcome.verdict is not RunEnd.PASSED:
        raise SandboxError(
            f"the machine failed to run a trial program ({outcome.detail}), so no code is graded; "
            "try again when it has processes and memory to spare"
        )
    return ""


@dataclass(frozen=True)
class _Job:
    """Inputs of one run."""

    sources: list[str]
    """The preamble and the program."""
    tests: str
    entry_points: list[str]
    limits: Limits
    isolated: bool
    libraries: Mapping[str, Path] = field(default_factory=dict)


def _run(job: _Job) -> Outcome:
    place = nullcontext("/") if job.isolated else tempfile.TemporaryDirectory(prefix="c4-")
    with ExitStack() as stack:
        try:
            report, report_end = os.pipe()
            stack.callback(os.close, report)
            with open(report_end, "wb", buffering=0):
                cwd = stack.enter_context(place)
                process = _start(job, cwd, report_end)
        except OSError as error:  # out of processes, descriptors, memory or disk
            return Outcome(RunEnd.MACHINE, _printable(str(error)))
        stack.callback(_stop, process, job.isolated)
        return _watch(process, report, job)


def _start(job: _Job, cwd: str, report_end: int) -> subprocess.Popen[bytes]:
    """Start the supervisor, which inherits the inputs of the job."""
    with tempfile.TemporaryFile() as file:
        # A file, not a pipe, so nothing must be written while watching. The tests come after
        # `split`, which the examiner reads only after it has forked the candidate.
        split = file.write(json.dumps(job.sources).encode())
        file.write(json.dumps([job.tests, job.entry_points]).encode())
        file.flush()
        settings = asdict(job.limits) | {
            "isolated": job.isolated, "report": report_end, "split": split, "parent": os.getpid(),
            "libraries": {name: str(path) for name, path in job.libraries.items()},
        }  # fmt: skip
        return subprocess.Popen(
            [sys.executable, "-P", "-S", "-s", "-B", str(_CHILD), json.dumps(settings)],
            stdin=file,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            cwd=cwd,
            env={"PYTHONHASHSEED": "0"},  # the order of a set must not decide a grade
            pass_fds=[report_end],
            start_new_session=True,
        )


def _watch(process: subprocess.Popen[bytes], report: int, job: _Job) -> Outcome:
    """Read the report to its end, or stop when time or output exceeds its limit."""
    assert process.stdout is not None
    said, printed = b"", 0
    left, last = job.limits.wall_seconds, time.monotonic()
    with selectors.DefaultSelector() as selector:
        selector.register(report, selectors.EVENT_READ)
        selector.register(process.stdout, selectors.EVENT_READ)
        while left > 0:
            for key, _ in selector.select(min(left, TICK)):
                chunk = os.read(key.fd, 2**16)
                if key.fd == report and not chunk:
                    return judge_report(said)
                elif key.fd == report:
                    said += chunk
                elif not chunk:
                    selector.unregister(key.fileobj)
                elif (printed := printed + len(chunk)) > job.limits.output_bytes:
                    bound = job.limits.output_bytes
                    return Outcome(RunEnd.LIMIT, f"more than {bound} bytes printed")
            # Time in which this process was stopped, as when a laptop sleeps, is not counted.
            now = time.monotonic()
            left, last = left - min(now - last, 2 * TICK), now
    # Without isolation a program may stop itself, or pretend to wait.
    standing = look_at(process.pid) if job.isolated else Standing()
    return judge_timeout(said, standing, job.limits)


def judge_report(said: bytes) -> Outcome:
    """Return how a run ended, from the report that its processes left.

    Args:
        said: lines that the examiner and supervisor wrote, each a JSON list.
    """
    begun, verdict, detail, code, cpu_used_up = False, None, "", None, False
    try:
        for name, *rest in map(json.loads, said.splitlines()):
            if name == "begun":
                begun = True
            elif name == "examiner":  # its exit code, negative for a signal
                code, cpu_used_up = rest
            else:
                (text,) = rest
                verdict, detail = name, _printable(text)
        if verdict == "no isolation":
            raise _NoIsolation(detail)
        if verdict is not None:
            return Outcome(RunEnd(verdict), detail)
    except (TypeError, ValueError):
        return Outcome(RunEnd.MACHINE, "the report of the sandbox is garbled")
    if not begun or code is None:
        return Outcome(RunEnd.MACHINE, "the sandbox was ended before it could say anything")
    if cpu_used_up:
        return Outcome(RunEnd.TIMEOUT, "CPU time used up while the tests ran")
    if code >= 0 or -code in ITS_OWN_DOING:
        return Outcome(RunEnd.CRASHED, f"the tests ended with status {code} on what it answered")
    return Outcome(RunEnd.MACHINE, f"the examiner was ended by {signal.Signals(-code).name}")


def judge_timeout(said: bytes, standing: Standing, limits: Limits) -> Outcome:
    """Decide who caused a timeout: a program that ran or slept, or a machine too busy to run it."""
    if not said:
        return Outcome(RunEnd.MACHINE, f"the program had not begun after {limits.wall_seconds:g} s")
    if said != BEGUN:
        return judge_report(said)  # it has ended; only its cleanup takes long
    after = f"of {limits.wall_seconds:g} s"
    if standing.halted:
        return Outcome(RunEnd.MACHINE, f"the program was {standing.halted} at the end {after}")
    if standing.waited > limits.wall_seconds / 2 > standing.ran:
        waited = f"waited {standing.waited:.1f} s {after} for a processor"
        return Outcome(RunEnd.MACHINE, f"the program {waited}")
    return Outcome(RunEnd.TIMEOUT, f"not done after {limits.wall_seconds:g} s")


def _printable(detail: str) -> str:
    """One line that a terminal can show."""
    return " ".join("".join(c if c.isprintable() else " " for c in detail).split())[:200]


def _stop(process: subprocess.Popen[bytes], isolated: bool) -> None:
    """End all processes that the run started; none is left on return."""
    assert process.stdout is not None
    process.stdout.close()
    if isolated:
        # On SIGTERM, the supervisor kills pid 1 of the namespace and waits until the kernel has
        # emptied it. If the supervisor were killed, it could not wait.
        process.terminate()
        with suppress(subprocess.TimeoutExpired):
            process.wait(5)
    with suppress(ProcessLookupError, PermissionError):
        if process.returncode is None:
            os.killpg(process.pid, signal.SIGKILL)
    process.wait()
