"""Workers: processes that were given the same command and share its work.

Which one a process is stands in its environment. An engine sets `C4_WORKER`; `srun`, `torchrun` and
`accelerate launch` set a rank, which chooses the device and who reports. Neither divides the work:
claims do.
"""

import json
import os
import platform
import secrets
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING

from c4.errors import ConfigError
from c4.store.claims import Sign

if TYPE_CHECKING:
    from c4.record.plan import RunConfig

WORKER_VARIABLE = "C4_WORKER"
"""Environment variable in which an engine tells a worker who it is; see `Worker`."""
RANK = ("RANK", "SLURM_PROCID")
LOCAL_RANK = ("LOCAL_RANK", "SLURM_LOCALID")
SIZE = ("WORLD_SIZE", "SLURM_NTASKS")
"""Environment variables that launchers set, by their kind."""
DONE, FAILED, REFUSED = 0, 1, 2
"""Exit codes of a command: there is nothing left to do, this process failed, none could do it."""


@dataclass(frozen=True, kw_only=True)
class Worker:
    """Who this process is among those that share the work of a command."""

    id: str = field(default_factory=lambda: secrets.token_hex(6))
    engine: str = ""
    """What started it, such as `ray` or `rank 3`; empty for a command that was given by hand."""
    device: str | None = None
    """The device that an engine gave it."""
    local_rank: int | None = None
    """Its number among those that a launcher started on this machine; it chooses the GPU."""
    reports: bool = True
    """Whether it shows progress and results."""
    since: int | None = None
    """The newest grade of the run when the user gave the command; only for `c4 grade`."""

    def environment(self, threads: int | None = None) -> dict[str, str]:
        """The environment variables that tell a new process who it is.

        Args:
            threads: on a CPU; None for torch's own choice.
        """
        told = {WORKER_VARIABLE: json.dumps(asdict(self))}
        return told if threads is None else told | {"OMP_NUM_THREADS": str(threads)}

    def sign(self, device: str = "cpu") -> Sign:
        """The first sign of life that it gives in a run."""
        place = f"{platform.node()} {device}"
        return Sign(worker=self.id, engine=self.engine, place=place)

    def config(self, config: "RunConfig") -> "RunConfig":
        """What a user asks to decode, as this worker plans it."""
        if self.device is not None:  # whoever started it has deleted what --fresh deletes
            return replace(config, device=self.device, fresh=False)
        if self.local_rank is None:
            return config
        if config.fresh:
            raise ConfigError(
                "--fresh deletes a run, which one of several processes would do to the others; "
                "give the command to one process first"
            )
        import torch

        return replace(config, device=self.choose_gpu(config.device, torch.cuda.device_count()))

    def choose_gpu(self, asked: str, gpus: int) -> str:
        """The device of one of several processes, if the user leaves the choice.

        Args:
            gpus: how many can be seen from here.
        """
        if self.local_rank is not None and gpus > 1 and asked in ("auto", "cuda"):
            return f"cuda:{self.local_rank % gpus}"
        return asked


def this_worker(environment: Mapping[str, str] = os.environ) -> Worker:
    """Who this process is, as its environment says."""
    if told := environment.get(WORKER_VARIABLE):
        return Worker(**json.loads(told))
    rank, local, size = (_number(environment, names) for names in (RANK, LOCAL_RANK, SIZE))
    if rank is None or size is None or size < 2:
        return Worker()
    engine = f"rank {rank}" if rank else ""  # the first does what a lone command does
    return Worker(engine=engine, local_rank=local or 0, reports=rank == 0)


def _number(environment: Mapping[str, str], names: Sequence[str]) -> int | None:
    given = [environment[name] for name in names if environment.get(name, "").isdecimal()]
    return int(given[0]) if given else None


@dataclass(frozen=True)
class Ended:
    """How a worker ended."""

    code: int = DONE
    reason: str = ""
    """Why, if not because there is nothing left to do."""

    @classmethod
    def of(cls, code: int, stderr: str) -> "Ended":
        """How a command ended, by its exit code and what it wrote to stderr."""
        if code == DONE:
            return cls()
        _, error, message = f"\n{stderr.strip()}".rpartition("\nerror: ")
        if not error:  # a traceback, whose last line says what happened
            message = message.rpartition("\n")[2]
        return cls(code, message or f"ended with code {code}")


@dataclass(frozen=True)
class Command:
    """A command that workers give again, each in a process of its own."""

    words: Sequence[str]
    """What the user typed after `c4`."""
    run: Callable[[Sequence[str]], tuple[int, str]]
    """Gives a command in this process; returns its exit code and what it wrote to stderr."""
    folder: str = field(default_factory=os.getcwd)
    """Where the user gave it: relative paths and modules of the user's own are meant from there."""

    def work(self, worker: Worker, threads: int | None = None) -> Ended:
        """Give the command in this process, which an engine has started for it."""
        with suppress(OSError):  # an error will name what is missed there
            os.chdir(self.folder)
        os.environ.update(worker.environment(threads))
        return Ended.of(*self.run(self.words))


def share_of_threads(workers: int) -> int:
    """Threads for each of several workers that share this machine's processors."""
    return max(1, processors() // workers)


def processors() -> int:
    """How many processors this process may use."""
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity else os.cpu_count() or 1
