"""What a worker is given, and how it ended: all that travels between machines."""

import os
import platform
import signal
import threading
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import NoReturn, Protocol

from c4.errors import C4Error
from c4.store.claims import Sign
from c4.store.locations import Location


@dataclass(frozen=True)
class Worker:
    """Who does a job, and with what."""

    engine: str
    id: str = field(default_factory=lambda: Sign().worker)
    device: str = "auto"
    threads: int | None = None
    """Threads on a CPU; None for torch's own choice."""
    folder: str = field(default_factory=os.getcwd)
    """Where the command was given: paths and modules that the user names are meant from there."""

    def sign(self) -> Sign:
        """The worker's first sign of life, from the machine and the process it has come to."""
        place = f"{platform.node()} {self.device}"
        return Sign(worker=self.id, engine=self.engine, place=place)


class Job(Protocol):
    """Something that any number of workers can do together, none knowing of the others."""

    @property
    def folders(self) -> Sequence[Location]:
        """The folders of runs in which its workers give signs of life."""
        ...

    def work(self, worker: Worker) -> list[int]:
        """Do what is left of the job. Returns the trajectories that this worker did."""
        ...


class WorkerFailedError(Exception):
    """A worker failed at one trajectory; another worker may do the others."""


@dataclass(frozen=True)
class Outcome:
    """How a worker ended."""

    done: Sequence[int] = ()
    """The trajectories that it did."""
    refused: str = ""
    """Why no worker can do the job."""
    failed: str = ""
    """Why this worker is no more, where another may go on."""


def do_work(job: Job, worker: Worker, *, on_signal: bool = True) -> Outcome:
    """Do a job in this process, and put into words what goes wrong with it.

    Args:
        on_signal: whether SIGTERM ends it, after claims are given back.
    """
    if on_signal and threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, _stop)
    with suppress(OSError):  # what is missed there will be named
        os.chdir(worker.folder)
    if worker.threads is not None:
        import torch

        torch.set_num_threads(worker.threads)
    try:
        return Outcome(done=job.work(worker))
    except WorkerFailedError as error:
        return Outcome(failed=str(error))
    except C4Error as error:
        return Outcome(refused=str(error))
    except KeyboardInterrupt:
        return Outcome(failed="interrupted")
    except Exception as error:
        return Outcome(failed=f"{type(error).__name__}: {error}")


def share_of_threads(workers: int) -> int:
    """Threads for each of several workers that share this machine's processors."""
    return max(1, processors() // workers)


def processors() -> int:
    """How many processors this process may use."""
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity else os.cpu_count() or 1


def _stop(number: int, _: object) -> NoReturn:
    raise SystemExit(128 + number)
