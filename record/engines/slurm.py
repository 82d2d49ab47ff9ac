"""Workers as an array of Slurm jobs through submitit, whose local executor needs no Slurm."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from c4.errors import ConfigError
from c4.record.engines.worker import Command, Ended, Worker, share_of_threads

if TYPE_CHECKING:
    from c4.record.engines import EngineChoice

GENERAL = {
    *("name", "timeout_min", "mem_gb", "nodes", "cpus_per_task", "gpus_per_node"),
    *("tasks_per_node", "stderr_to_stdout"),
}
"""Parameters that submitit has for every kind of cluster; all others are specific to Slurm."""
NUMBERS = GENERAL - {"name", "stderr_to_stdout"}


def import_submitit() -> Any:
    try:
        import submitit
    except ImportError:
        raise ConfigError(
            "--engine slurm needs submitit; install it with: pip install 'c4-dlm[slurm]'"
        ) from None
    return submitit


@dataclass(frozen=True)
class Work:
    """The function that a job of the array runs."""

    command: Command
    worker: Worker
    threads: int | None

    def __call__(self) -> Ended:
        return self.command.work(self.worker, self.threads)

    def checkpoint(self) -> Any:
        """Queue a preempted job again; it continues from the state in the storage."""
        return import_submitit().helpers.DelayedSubmission(self)


class SlurmEngine:
    """Submits the workers that start together as one job array.

    Parameters of `--slurm` are `folder`, for submitit's files, visible to all nodes; `cluster`
    (`slurm` or `local`); and those of submitit's executor, such as partition or timeout_min.
    """

    name = "slurm"

    def __init__(self, command: Command, choice: "EngineChoice", *, on_gpu: bool) -> None:
        submitit = import_submitit()
        self._command = command
        workers = choice.workers or 1
        self.devices: Sequence[str] = [choice.device] * workers
        given = dict(choice.slurm)
        folder, cluster = given.pop("folder", "c4-slurm"), given.pop("cluster", "slurm")
        on_one_machine = cluster == "local"
        self.poll_seconds = 0.3 if on_one_machine else 5.0
        # Slurm allocates processors to each job.
        self._threads = share_of_threads(workers) if on_one_machine else None
        usual = {"name": "c4", "timeout_min": 24 * 60, "slurm_array_parallelism": workers}
        if on_gpu and choice.device != "cpu" and cluster == "slurm":
            usual["gpus_per_node"] = 1
        settings = usual | executor_settings(given)
        try:
            self._executor = submitit.AutoExecutor(folder=folder, cluster=cluster)
            self._executor.update_parameters(**settings)
        except (RuntimeError, ValueError, NameError, AssertionError) as error:
            raise ConfigError(f"--engine slurm: {error}") from error

    def start(self, workers: Sequence[Worker]) -> list[Any]:
        with self._executor.batch():
            works = (Work(self._command, worker, self._threads) for worker in workers)
            return [self._executor.submit(work) for work in works]

    def stop(self, jobs: Sequence[Any]) -> None:
        for job in jobs:
            job.cancel()
        for job in jobs:
            with suppress(Exception):  # it was cancelled
                job.result()


def executor_settings(given: Mapping[str, str]) -> dict[str, Any]:
    """Convert parameters to the names and types of submitit's executor."""
    found: dict[str, Any] = {}
    for name, value in given.items():
        if name in NUMBERS and not value.isdecimal():
            raise ConfigError(f"--slurm {name}={value}: give a whole number")
        key = name if name in GENERAL or name.startswith("slurm_") else f"slurm_{name}"
        found[key] = int(value) if value.isdecimal() else value
    return found
