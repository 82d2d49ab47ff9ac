"""Workers as processes of this machine, one for each GPU, or several that share the CPU."""

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from typing import IO

from c4.record.engines.supervise import Running
from c4.record.engines.worker import FAILED, Command, Ended, Worker, share_of_threads

PATIENCE = 20.0
"""Seconds that workers have to give back what they hold."""
PROGRAM = (sys.executable, "-m", "c4.cli")


class LocalWorker:
    """A process that was given the command again."""

    def __init__(self, worker: Worker, process: subprocess.Popen[bytes], log: IO[bytes]) -> None:
        self.worker = worker
        self.process = process
        self.log = log
        """What it writes to stderr."""

    def ended(self) -> Ended | None:
        code = self.process.poll()
        if code is None:
            return None
        with self.log as log:
            log.seek(0)
            said = log.read().decode("utf-8", "replace")
        return Ended.of(code, said) if code >= 0 else Ended(FAILED, killed_by(-code))


class LocalEngine:
    """Starts processes.

    Args:
        devices: one for each worker.
    """

    poll_seconds = 0.2

    def __init__(
        self, command: Command, devices: Sequence[str], program: Sequence[str] = PROGRAM
    ) -> None:
        self.workers = len(devices)
        self._command = command
        self._devices = devices
        self._program = program

    def start(self, places: Sequence[int]) -> list[LocalWorker]:
        return [self._start(self._devices[place]) for place in places]

    def _start(self, device: str) -> LocalWorker:
        worker = Worker(engine="local", device=device, reports=False, since=self._command.since)
        threads = share_of_threads(self.workers) if device == "cpu" else None
        log = tempfile.TemporaryFile()  # noqa: SIM115 - closed when the process has ended
        process = subprocess.Popen(  # noqa: S603 - c4 itself, with the words of its user
            [*self._program, *self._command.words],
            env=os.environ | worker.environment(threads),
            cwd=self._command.folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=log,
        )
        return LocalWorker(worker, process, log)

    def stop(self, running: Sequence[Running]) -> None:
        processes = [started.process for started in running if isinstance(started, LocalWorker)]
        for process in processes:
            process.terminate()
        for process in processes:
            with suppress(subprocess.TimeoutExpired):
                process.wait(PATIENCE)
            process.kill()
            process.wait()


def killed_by(number: int) -> str:
    """What ended a process, by the number of the signal."""
    try:
        killer = signal.Signals(number)
    except ValueError:
        return f"ended by signal {number}"
    memory = ", perhaps because memory ran out" if killer is signal.SIGKILL else ""
    return f"ended by {killer.name}{memory}"
