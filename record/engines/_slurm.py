"""Workers as an array of Slurm jobs, through submitit; its local executor needs no Slurm."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from c4.errors import ConfigError
from c4.record.engines.work import Job, Outcome, Worker, do_work, share_of_threads

GENERAL = {
    *("name", "timeout_min", "mem_gb", "nodes", "cpus_per_task", "gpus_per_node"),
    *("tasks_per_node", "stderr_to_stdout"),
}
"""Parameters that submitit knows for every kind of cluster; others are Slurm's own."""
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
class SlurmWorker:
    """What a job of the array runs."""

    job: Job
    worker: Worker

    def __call__(self) -> Outcome:
        return do_work(self.job, self.worker, on_signal=False)  # submitit's signals mean requeueing

    def checkpoint(self) -> Any:
        """What a job that is preempted is queued again with: all that is left to do."""
        return import_submitit().helpers.DelayedSubmission(self)


class SlurmEngine:
    """Submits jobs, all that start together as one array.

    Args:
        parameters: `folder` for submitit's files, which all nodes must see; `cluster` (`slurm` or
            `local`); and what submitit's executor takes, such as partition, timeout_min, mem_gb.
    """

    name = "slurm"

    def __init__(
        self, workers: int, device: str, parameters: Mapping[str, str], *, on_gpu: bool
    ) -> None:
        submitit = import_submitit()
        given = dict(parameters)
        folder, cluster = given.pop("folder", "c4-slurm"), given.pop("cluster", "slurm")
        self.workers, self.device = workers, device
        on_one_machine = cluster == "local"
        self.poll_seconds = 0.3 if on_one_machine else 5.0
        # Slurm gives each job processors of its own.
        self.threads = share_of_threads(workers) if on_one_machine else None
        settings = _settings(given)
        if on_gpu and device != "cpu" and cluster == "slurm":
            settings.setdefault("gpus_per_node", 1)
        try:
            self._executor = submitit.AutoExecutor(folder=folder, cluster=cluster)
            self._executor.update_parameters(
                **{"name": "c4", "timeout_min": 24 * 60, "slurm_array_parallelism": workers}
                | settings
            )
        except (RuntimeError, ValueError, NameError, AssertionError) as error:
            raise ConfigError(f"--engine slurm: {error}") from error
        self._waiting: list[SlurmWorker] = []
        self._running: dict[str, tuple[Worker, Any]] = {}

    def new_worker(self, number: int) -> Worker:  # noqa: ARG002 - all are alike
        return Worker(self.name, device=self.device, threads=self.threads)

    def start(self, job: Job, worker: Worker) -> None:
        self._waiting.append(SlurmWorker(job, worker))

    def _submit(self) -> None:
        waiting, self._waiting = self._waiting, []
        if not waiting:
            return
        with self._executor.batch():
            jobs = [self._executor.submit(worker) for worker in waiting]
        for started, job in zip(waiting, jobs, strict=True):
            self._running[started.worker.id] = started.worker, job

    def ended(self) -> list[tuple[Worker, Outcome]]:
        self._submit()
        found = []
        for worker, job in list(self._running.values()):
            if job.done():
                del self._running[worker.id]
                found.append((worker, _outcome(job)))
        return found

    def stop(self) -> None:
        for _, job in self._running.values():
            job.cancel()
        for _, job in self._running.values():
            _outcome(job)
        self._running.clear()


def _outcome(job: Any) -> Outcome:
    try:
        outcome = job.result()
    except Exception as error:  # submitit has several words for a job that did not come to its end
        words = [line for line in str(error).split("\n") if line.strip()]
        return Outcome(failed=f"{type(error).__name__}: {words[0] if words else 'no reason given'}")
    return outcome if isinstance(outcome, Outcome) else Outcome(failed="no outcome")


def _settings(given: Mapping[str, str]) -> dict[str, Any]:
    """What submitit's executor takes, in its own words and types."""
    found: dict[str, Any] = {}
    for name, value in given.items():
        if name in NUMBERS and not value.isdecimal():
            raise ConfigError(f"--slurm {name}={value}: give a whole number")
        key = name if name in GENERAL or name.startswith("slurm_") else f"slurm_{name}"
        found[key] = int(value) if value.isdecimal() else value
    return found
