"""Workers: processes that run the same command and share its work.

Environment variables tell a process which worker it is. An engine sets `C4_WORKER`; `srun`,
`torchrun` and `accelerate launch` set a rank, which decides the device and which worker reports.
Neither divides the work; claims do that.
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
"""Environment variable in which an engine passes a `Worker` as JSON."""
RANK = ("RANK", "SLURM_PROCID")
LOCAL_RANK = ("LOCAL_RANK", "SLURM_LOCALID")
SIZE = ("WORLD_SIZE", "SLURM_NTASKS")
"""Environment variables of launchers: rank, rank on this machine, and number of processes."""
DONE, FAILED, REFUSED = 0, 1, 2
"""Exit codes: no work is left; this process failed; the command is refused for any process."""


@dataclass(frozen=True, kw_only=True)
class Worker:
    """The identity and role of one of the processes that share the work of a command."""

    id: str = field(default_factory=lambda: secrets.token_hex(6))
    engine: str = ""
    """The engine or launcher, such as `ray` or `rank 3`; empty for a command given by hand."""
    device: str | None = None
    """The device assigned by the engine."""
    local_rank: int | None = None
    """Its rank among the processes of a launcher on this machine; decides the GPU."""
    reports: bool = True
    """Whether it displays progress and results."""
    since: int | None = None
    """Number of the run's newest grade when `c4 grade` began; None for other commands."""

    def environment(self, threads: int | None = None) -> dict[str, str]:
        """Return the environment variables that make a new process this worker.

        Args:
            threads: number of CPU threads; None for torch's default.
        """
        told = {WORKER_VARIABLE: json.dumps(asdict(self))}
        return told if threads is None else told | {"OMP_NUM_THREADS": str(threads)}

    def sign(self, device: str = "cpu") -> Sign:
        """Return the first sign of life for a run."""
        place = f"{platform.node()} {device}"
        return Sign(worker=self.id, engine=self.engine, place=place)

    def config(self, config: "RunConfig") -> "RunConfig":
        """Adapt a configuration to this worker."""
        if self.device is not None:  # the engine's command has done --fresh
            return replace(config, device=self.device, fresh=False)
        if self.local_rank is None:
            return config
        if config.fresh:
            raise ConfigError(
                "--fresh deletes a run, so one process would delete the work of the others; "
                "give the command to one process first"
            )
        import torch

        return replace(config, device=self.choose_gpu(config.device, torch.cuda.device_count()))

    def choose_gpu(self, asked: str, gpus: int) -> str:
        """Return this process's GPU if the user left the choice open, else the requested device.

        Args:
            gpus: number of GPUs visible to this process.
        """
        if self.local_rank is not None and gpus > 1 and asked in ("auto", "cuda"):
            return f"cuda:{self.local_rank % gpus}"
        return asked


def this_worker(environment: Mapping[str, str] = os.environ) -> Worker:
    """Return the worker that the environment describes."""
    if told := environment.get(WORKER_VARIABLE):
        return Worker(**json.loads(told))
    rank, local, size = (_number(environment, names) for names in (RANK, LOCAL_RANK, SIZE))
    if rank is None or size is None or size < 2:
        return Worker()
    engine = f"rank {rank}" if rank else ""  # rank 0 acts like a single command
    return Worker(engine=engine, local_rank=local or 0, reports=rank == 0)


def _number(environment: Mapping[str, str], names: Sequence[str]) -> int | None:
    given = [environment[name] for name in names if environment.get(name, "").isdecimal()]
    return int(given[0]) if given else None


@dataclass(frozen=True)
class Ended:
    """The end of a worker: its exit code and reason."""

    code: int = DONE
    reason: str = ""
    """Reason of a failure; empty if no work is left."""

    @classmethod
    def of(cls, code: int, stderr: str) -> "Ended":
        """Make an `Ended` from a command's exit code and stderr."""
        if code == DONE:
            return cls()
        _, error, message = f"\n{stderr.strip()}".rpartition("\nerror: ")
        if not error:  # the last line of a traceback names the error
            message = message.rpartition("\n")[2]
        return cls(code, message or f"ended with code {code}")


@dataclass(frozen=True)
class Command:
    """A command that each worker repeats in its own process."""

    words: Sequence[str]
    """The arguments that the user typed after `c4`."""
    run: Callable[[Sequence[str]], tuple[int, str]]
    """Runs a command in this process; returns its exit code and its stderr."""
    folder: str = field(default_factory=os.getcwd)
    """The user's working directory, for relative paths and the user's own modules."""

    def work(self, worker: Worker, threads: int | None = None) -> Ended:
        """Run the command in this process, which an engine has started for it."""
        with suppress(OSError):  # a later error names any missing file
            os.chdir(self.folder)
        os.environ.update(worker.environment(threads))
        return Ended.of(*self.run(self.words))


def share_of_threads(workers: int) -> int:
    """Return the threads per worker if several share this machine's processors."""
    return max(1, processors() // workers)


def processors() -> int:
    """Return the number of processors that this process may use."""
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity else os.cpu_count() or 1
