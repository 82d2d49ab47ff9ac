"""Workers as processes on this machine, one for each GPU, or several that share the CPU."""

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress

from c4.record.engines import Job
from c4.record.engines.worker import FAILED, Command, Ended, Worker, share_of_threads

PATIENCE = 20.0
"""Seconds that workers have to release their claims before they are killed."""
PROGRAM = (sys.executable, "-m", "c4.cli")


class Process:
    """A process that repeats the command."""

    def __init__(self, words: Sequence[str], environment: Mapping[str, str], folder: str) -> None:
        self._stderr = tempfile.TemporaryFile()  # noqa: SIM115 - closed by `result`
        self.process = subprocess.Popen(  # noqa: S603 - c4 itself, with its user's arguments
            words,
            env=os.environ | environment,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=self._stderr,
        )

    def done(self) -> bool:
        return self.process.poll() is not None

    def result(self) -> Ended:
        code = self.process.wait()
        with self._stderr as file:
            file.seek(0)
            said = file.read().decode("utf-8", "replace")
        if code >= 0:
            return Ended.of(code, said)
        name = signal.strsignal(-code) or "unknown"
        memory = ", perhaps because memory ran out" if -code == signal.SIGKILL else ""
        return Ended(FAILED, f"ended by signal {-code} ({name}){memory}")


class LocalEngine:
    """Starts workers as local processes."""

    name = "local"
    poll_seconds = 0.2

    def __init__(
        self, command: Command, devices: Sequence[str], program: Sequence[str] = PROGRAM
    ) -> None:
        self.devices = devices
        self._command = command
        self._program = program

    def start(self, workers: Sequence[Worker]) -> list[Process]:
        words = [*self._program, *self._command.words]
        share = share_of_threads(len(self.devices))
        return [
            Process(
                words,
                worker.environment(share if worker.device == "cpu" else None),
                self._command.folder,
            )
            for worker in workers
        ]

    def stop(self, jobs: Sequence[Job]) -> None:
        processes = [job.process for job in jobs if isinstance(job, Process)]
        for process in processes:
            process.terminate()
        for process in processes:
            with suppress(subprocess.TimeoutExpired):
                process.wait(PATIENCE)
            process.kill()
            process.wait()
