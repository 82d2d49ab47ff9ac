"""Run a model-written program and its tests; say whether the tests passed.

Three processes, so that a pass cannot be forged:

- *this one* starts a fresh interpreter (`_sandbox_child.py`), watches clock and output, kills;
- *the examiner*, inside the sandbox, runs the tests and alone can write the verdict;
- *the candidate*, its child, runs the program and answers calls.

The tests name the program's functions; each call crosses a pipe to the candidate as plain data,
and only plain data comes back. There is no secret to steal: the candidate never holds the
verdict's pipe, nor the tests' text, only the arguments of each call. Whatever it does inside its
own process (`os._exit`, patched builtins, trace functions, stolen frames, forged messages on every
descriptor) can change the values it answers, and wrong values fail. The price: tests may exchange
numbers, strings, bytes, lists, tuples, sets and dicts, and call functions and methods; any other
object of the program stays with it and equals nothing, so an `__eq__` that always agrees is no use
either. A list, dict or set handed over is updated if the program changed it.

Isolation (Linux 5.12 and newer, x86-64 or arm64): own user, mount, pid, net, ipc and uts
namespaces; a root of read-only library folders and a size-limited scratch in memory; not root, no
capabilities, no new privileges; a seccomp filter that refuses sockets, further namespaces, shared
memory, tracing and whatever is younger than Linux 5.0. The examiner is pid 1 there: when it ends,
everything ends.

Not resisted: a kernel bug; time lost up to the wall clock; memory up to `memory_bytes` for each of
`processes`; a right guess. With `unsafe`, on a machine without isolation, only limits, the clean
environment and the process group remain: a guard against accidents, not against intent.
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
from contextlib import nullcontext, suppress
from dataclasses import asdict, dataclass
from enum import StrEnum
from functools import cache
from pathlib import Path

from c4.errors import ConfigError, SandboxError

_CHILD = Path(__file__).with_name("_sandbox_child.py")


class RunEnd(StrEnum):
    """How a run ended. Only `PASSED` is a pass."""

    PASSED = "passed"
    FAILED = "failed"  # a wrong answer, an exception, a syntax error, an early exit
    TIMEOUT = "timeout"  # wall clock or CPU time
    LIMIT = "limit"  # memory or output
    KILLED = "killed"  # a signal, or an end without a verdict


class Isolation(StrEnum):
    """What keeps the program from the rest of the machine."""

    NAMESPACES = "namespaces"
    NONE = "none"


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
    """Per process. One of MBPP's own solutions takes five on a machine with nothing else to do."""
    memory_bytes: int = 512 * 2**20
    """Address space, per process."""
    output_bytes: int = 2**20
    """Standard output and error together."""
    processes: int = 8
    """The program's processes and threads together."""
    file_bytes: int = 16 * 2**20
    """One file; with isolation, the whole scratch folder."""

    def __post_init__(self) -> None:
        for name, value in asdict(self).items():
            if value <= 0:
                raise ConfigError(f"{name} must be more than 0, not {value}")


DEFAULT_LIMITS = Limits()
NO_LIBRARIES: Mapping[str, Path] = {}


def isolation() -> Isolation:
    """What this machine offers, found by starting an isolated program once."""
    return Isolation.NONE if _what_is_missing() else Isolation.NAMESPACES


def require_isolation() -> None:
    """Raise SandboxError where programs cannot be isolated."""
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
    limits: Limits = DEFAULT_LIMITS,
    unsafe: bool = False,
    libraries: Mapping[str, Path] = NO_LIBRARIES,
) -> Outcome:
    """Whether `tests` pass on `program`, which stands behind `preamble` in one module.

    Args:
        preamble: Trusted, as the tests are; what it defines is not asked of the program.
        libraries: Folders of packages, by name, that the program may read and import besides
            Python's own.
        unsafe: Run even where isolation cannot be had. Changes nothing where it can.
    """
    if not unsafe:
        require_isolation()
    isolated = isolation() is Isolation.NAMESPACES
    return _run([preamble, program], tests, limits, isolated=isolated, libraries=libraries)


@cache
def _what_is_missing() -> str:
    if not sys.platform.startswith("linux"):
        return f"no namespaces on {sys.platform}"
    try:
        outcome = _run(["", "ok = True"], "assert ok", Limits(wall_seconds=30), isolated=True)
    except SandboxError as error:
        return str(error)
    return "" if outcome.verdict is RunEnd.PASSED else f"the trial run {outcome.verdict}"


def _run(
    sources: list[str],
    tests: str,
    limits: Limits,
    *,
    isolated: bool,
    libraries: Mapping[str, Path] = NO_LIBRARIES,
) -> Outcome:
    place = nullcontext("/") if isolated else tempfile.TemporaryDirectory(prefix="c4-")
    report, report_end = os.pipe()
    try:
        with place as cwd, tempfile.TemporaryFile() as job:
            # A file, not a pipe: nobody has to feed it while watching. The tests come after
            # `split`, where the examiner looks only once the candidate has been forked.
            split = job.write(json.dumps(sources).encode())
            job.write(json.dumps(tests).encode())
            job.flush()
            settings = asdict(limits) | {
                "isolated": isolated, "report": report_end, "split": split, "parent": os.getpid(),
                "libraries": {name: str(path) for name, path in libraries.items()},
            }  # fmt: skip
            process = subprocess.Popen(
                [sys.executable, "-P", "-S", "-s", "-B", str(_CHILD), json.dumps(settings)],
                stdin=job,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                cwd=cwd,
                env={"PYTHONHASHSEED": "0"},  # the order of a set must not decide a grade
                pass_fds=[report_end],
                start_new_session=True,
            )
            try:
                os.close(report_end)
                report_end = -1
                return _watch(process, report, limits)
            finally:
                _stop(process, isolated)
    finally:
        os.close(report)
        if report_end >= 0:
            os.close(report_end)


def _watch(process: subprocess.Popen[bytes], report: int, limits: Limits) -> Outcome:
    assert process.stdout is not None
    deadline = time.monotonic() + limits.wall_seconds
    heard, printed = b"", 0
    with selectors.DefaultSelector() as selector:
        selector.register(report, selectors.EVENT_READ)
        selector.register(process.stdout, selectors.EVENT_READ)
        while (left := deadline - time.monotonic()) > 0:
            for key, _ in selector.select(left):
                chunk = os.read(key.fd, 2**16)
                if key.fd == report and not chunk:
                    return _read_report(heard)
                elif key.fd == report:
                    heard += chunk
                elif not chunk:
                    selector.unregister(key.fileobj)
                elif (printed := printed + len(chunk)) > limits.output_bytes:
                    return Outcome(RunEnd.LIMIT, f"more than {limits.output_bytes} bytes printed")
    return Outcome(RunEnd.TIMEOUT, f"not done after {limits.wall_seconds:g} s")


def _read_report(heard: bytes) -> Outcome:
    if not heard:
        return Outcome(RunEnd.KILLED, "ended without a verdict")
    verdict, detail = json.loads(heard)
    detail = " ".join("".join(c if c.isprintable() else " " for c in detail).split())[:200]
    if verdict == "no isolation":
        raise SandboxError(detail)
    return Outcome(RunEnd(verdict), detail)


def _stop(process: subprocess.Popen[bytes], isolated: bool) -> None:
    """End everything that was started; nothing of it lives on when this returns."""
    assert process.stdout is not None
    process.stdout.close()
    if isolated:
        # Asked so, the child kills pid 1 of the namespace and waits until the kernel has
        # emptied it. Killed itself, it could not wait.
        process.terminate()
        with suppress(subprocess.TimeoutExpired):
            process.wait(5)
    with suppress(ProcessLookupError, PermissionError):
        if process.returncode is None:
            os.killpg(process.pid, signal.SIGKILL)
    process.wait()
