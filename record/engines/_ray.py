"""Workers as actors of a Ray cluster: one that runs, or one started for the call.

Only Ray's core is used. An actor is given a job and a worker, and returns an outcome, which names
trajectories by their numbers; all else goes through the storage.
"""

from contextlib import suppress
from typing import Any

from c4.errors import ConfigError
from c4.record.engines.work import Job, Outcome, Worker, do_work, processors


def import_ray() -> Any:
    try:
        import ray
    except ImportError:
        raise ConfigError(
            "--engine ray needs Ray; install it with: pip install 'c4-dlm[ray]'"
        ) from None
    return ray


class RayWorker:
    """What runs on the cluster."""

    def work(self, job: Job, worker: Worker) -> Outcome:
        return do_work(job, worker)

    def leave(self) -> None:
        """End the actor, after its work and whether or not anybody is left to ask for it."""
        import_ray().actor.exit_actor()


class RayEngine:
    """Starts actors, each with a GPU where the cluster has any.

    Args:
        address: of a running cluster; None starts one on this machine.
        workers: None for one per GPU, or one where there is none.
        device: `auto`, or `cpu` to leave GPUs alone.
    """

    name = "ray"
    poll_seconds = 0.5

    def __init__(
        self, address: str | None, workers: int | None, device: str, *, on_gpu: bool
    ) -> None:
        self._ray = import_ray()
        self._outlives = address is not None
        self._started = not self._ray.is_initialized()
        if self._started:
            self._connect(address, workers)
        there = int(self._ray.cluster_resources().get("GPU", 0))
        self._gpus = 1 if on_gpu and device != "cpu" and there else 0
        self.device = device if self._gpus or device != "auto" else "cpu"
        self.workers = workers or (there if self._gpus else 1)
        self._running: dict[str, tuple[Worker, Any, Any]] = {}

    def _connect(self, address: str | None, workers: int | None) -> None:
        options: dict[str, Any] = {"address": address or "local"}
        if address is None:
            options["num_cpus"] = max(workers or 1, processors())
            options["include_dashboard"] = False
        try:
            self._ray.init(log_to_driver=False, logging_level="ERROR", **options)
        except (ConnectionError, ValueError, RuntimeError) as error:
            reason = str(error).split("\n")[0]
            raise ConfigError(f"no Ray cluster at {options['address']}: {reason}") from error

    def new_worker(self, number: int) -> Worker:  # noqa: ARG002 - all are alike
        return Worker(self.name, device=self.device, threads=None if self._gpus else 1)

    def start(self, job: Job, worker: Worker) -> None:
        options: dict[str, Any] = {"num_cpus": 1, "num_gpus": self._gpus, "max_restarts": 0}
        if self._outlives:  # workers go on if this process is killed
            options |= {"lifetime": "detached", "name": f"c4-{worker.id}"}
        actor = self._ray.remote(RayWorker).options(**options).remote()
        self._running[worker.id] = worker, actor, actor.work.remote(job, worker)
        actor.leave.remote()

    def ended(self) -> list[tuple[Worker, Outcome]]:
        found = []
        for worker, actor, answer in list(self._running.values()):
            ready, _ = self._ray.wait([answer], timeout=0)
            if ready:
                del self._running[worker.id]
                found.append((worker, self._outcome(answer)))
                self._end(actor)
        return found

    def _outcome(self, answer: Any) -> Outcome:
        try:
            outcome = self._ray.get(answer)
        except Exception as error:  # Ray has many words for an actor that is gone
            words = str(error).strip().split("\n")
            return Outcome(failed=f"{type(error).__name__}: {words[0]}")
        return outcome if isinstance(outcome, Outcome) else Outcome(failed="no outcome")

    def _end(self, actor: Any) -> None:
        with suppress(Exception):  # it has ended by itself
            self._ray.kill(actor)

    def stop(self) -> None:
        for _, actor, _ in self._running.values():
            self._end(actor)
        self._running.clear()
        if self._started:
            self._ray.shutdown()
