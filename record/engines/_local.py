"""Workers as processes of this machine, one for each GPU, or several that share the CPU."""

import signal
from collections.abc import Sequence
from contextlib import suppress
from multiprocessing import get_context
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess

from c4.record.engines.work import Job, Outcome, Worker, do_work

PATIENCE = 20.0
"""Seconds that workers have to give back what they hold."""


class LocalEngine:
    """Starts processes.

    Args:
        devices: one for each worker.
        threads: of each worker, on a CPU.
    """

    name = "local"
    poll_seconds = 0.2

    def __init__(self, devices: Sequence[str], threads: int | None) -> None:
        self.devices = devices
        self.threads = threads
        self.workers = len(devices)
        self._running: dict[str, tuple[Worker, BaseProcess, Connection]] = {}

    def new_worker(self, number: int) -> Worker:
        return Worker(self.name, device=self.devices[number], threads=self.threads)

    def start(self, job: Job, worker: Worker) -> None:
        context = get_context("spawn")  # a fork would copy torch's threads halfway
        ours, theirs = context.Pipe(duplex=False)
        process = context.Process(target=_work, args=(job, worker, theirs), name=worker.id)
        process.start()
        theirs.close()
        self._running[worker.id] = worker, process, ours

    def ended(self) -> list[tuple[Worker, Outcome]]:
        found = []
        for worker, process, pipe in list(self._running.values()):
            alive = process.is_alive()  # before the pipe is asked: what it said is then there
            outcome = _told(pipe)
            if outcome is None and alive:
                continue
            process.join()
            pipe.close()
            del self._running[worker.id]
            found.append((worker, outcome or Outcome(failed=_how_it_ended(process))))
        return found

    def stop(self) -> None:
        for _, process, _ in self._running.values():
            process.terminate()
        for _, process, pipe in self._running.values():
            process.join(PATIENCE)
            process.kill()
            process.join()
            pipe.close()
        self._running.clear()


def _work(job: Job, worker: Worker, pipe: Connection) -> None:
    with suppress(BrokenPipeError):  # nobody is left to be told
        pipe.send(do_work(job, worker))


def _told(pipe: Connection) -> Outcome | None:
    try:
        told = pipe.recv() if pipe.poll() else None
    except (EOFError, OSError):
        return None
    return told if isinstance(told, Outcome) else None


def _how_it_ended(process: BaseProcess) -> str:
    code = process.exitcode or 0
    if code >= 0:
        return f"ended with code {code}"
    with suppress(ValueError):
        killer = signal.Signals(-code)
        memory = ", perhaps because memory ran out" if killer is signal.SIGKILL else ""
        return f"ended by {killer.name}{memory}"
    return f"ended by signal {-code}"
