"""CPU time, waiting time and states of processes, as reported by /proc."""

import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

PROC = Path("/proc")
HALTED = {"T": "stopped", "t": "being traced", "D": "stuck in the kernel"}
"""States in which something other than the program itself keeps it from running."""


@dataclass(frozen=True)
class Standing:
    """Activity of one sandbox's processes; all zero if /proc does not report it."""

    ran: float = 0.0
    """CPU seconds of all processes together, including those that have ended."""
    waited: float = 0.0
    """Seconds that a thread was runnable without a processor; the maximum over threads."""
    halted: str = ""
    """State that keeps the supervisor, examiner or candidate from running; empty if none does."""


@dataclass(frozen=True)
class _Process:
    pid: int
    parent: int
    state: str
    ran: float
    """CPU seconds, including those of children that it has waited for."""


def look_at(supervisor: int) -> Standing:
    """Return the activity of a supervisor and all its descendants."""
    processes = {process.pid: process for process in _processes()}
    family = [p for p in processes.values() if _descends(p, supervisor, processes)]
    # The program can stop processes that it started, but not pid 1 and 2 inside.
    ours = [p for p in family if p.pid == supervisor or _inner_pid(p.pid) in (1, 2)]
    halted = [HALTED[process.state] for process in ours if process.state in HALTED]
    return Standing(
        ran=sum(process.ran for process in family),
        waited=max((waited for p in family for waited in _waiting_times(p.pid)), default=0.0),
        halted=halted[0] if halted else "",
    )


def _processes() -> Iterator[_Process]:
    ticks = os.sysconf("SC_CLK_TCK")
    for folder in PROC.glob("[0-9]*"):
        with suppress(OSError, LookupError):  # it may just have ended
            # A process name may hold any character; plain fields follow its last bracket.
            words = (folder / "stat").read_text(errors="replace").rpartition(")")[2].split()
            ran = sum(map(int, words[11:15])) / ticks
            yield _Process(int(folder.name), int(words[1]), words[0], ran)


def _descends(process: _Process, ancestor: int, processes: Mapping[int, _Process]) -> bool:
    seen: set[int] = set()
    while process.pid != ancestor:
        seen.add(process.pid)
        if process.parent not in processes or process.parent in seen:
            return False
        process = processes[process.parent]
    return True


def _inner_pid(pid: int) -> int | None:
    """A process's pid in its own namespace."""
    with suppress(OSError):
        for line in (PROC / str(pid) / "status").read_text(errors="replace").splitlines():
            if line.startswith("NSpid:"):
                return int(line.split()[-1])
    return None


def _waiting_times(pid: int) -> Iterator[float]:
    """Seconds that each thread was runnable without a processor."""
    for thread in (PROC / str(pid) / "task").glob("[0-9]*"):
        with suppress(OSError, LookupError):
            yield int((thread / "schedstat").read_text().split()[1]) / 1e9
