"""Workers as actors of a Ray cluster: a running one, or one started for the command.

Only Ray's core is used. An actor receives the command and returns how it ended; all other data goes
through the storage.
"""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from c4.errors import ConfigError
from c4.record.engines import Job
from c4.record.engines.worker import Command, Ended, Worker, processors

if TYPE_CHECKING:
    from c4.record.engines import EngineChoice


def import_ray() -> Any:
    try:
        import ray
    except ImportError:
        raise ConfigError(
            "--engine ray needs Ray; install it with: pip install 'c4-dlm[ray]'"
        ) from None
    return ray


class Actor:
    """The actor that runs a worker on the cluster."""

    def work(self, command: Command, worker: Worker, threads: int | None) -> Ended:
        return command.work(worker, threads)

    def leave(self) -> None:
        """End the actor after its work, even if the process that started it is gone."""
        import_ray().actor.exit_actor()


@dataclass(frozen=True)
class RayJob:
    """An actor that repeats the command."""

    actor: Any
    answer: Any

    def done(self) -> bool:
        return bool(import_ray().wait([self.answer], timeout=0)[0])

    def result(self) -> Ended:
        ended: Ended = import_ray().get(self.answer)
        return ended


class RayEngine:
    """Starts actors, each with one GPU if the cluster has GPUs and the command can use them."""

    name = "ray"
    poll_seconds = 0.5

    def __init__(self, command: Command, choice: "EngineChoice", *, on_gpu: bool) -> None:
        self._ray = import_ray()
        self._command = command
        self._outlives = choice.ray_address is not None
        self._started = not self._ray.is_initialized()
        if self._started:
            self._connect(choice)
        there = int(self._ray.cluster_resources().get("GPU", 0))
        self._gpus = 1 if on_gpu and choice.device != "cpu" and there else 0
        device = choice.device if self._gpus or choice.device != "auto" else "cpu"
        self.devices: Sequence[str] = [device] * (choice.workers or (there if self._gpus else 1))

    def _connect(self, choice: "EngineChoice") -> None:
        options: dict[str, Any] = {"address": choice.ray_address or "local"}
        if choice.ray_address is None:
            options["num_cpus"] = max(choice.workers or 1, processors())
            options["include_dashboard"] = False
        try:
            self._ray.init(log_to_driver=False, logging_level="ERROR", **options)
        except (ConnectionError, ValueError, RuntimeError) as error:
            reason = str(error).split("\n")[0]
            raise ConfigError(f"no Ray cluster at {options['address']}: {reason}") from error

    def start(self, workers: Sequence[Worker]) -> list[RayJob]:
        return [self._start(worker) for worker in workers]

    def _start(self, worker: Worker) -> RayJob:
        options: dict[str, Any] = {"num_cpus": 1, "num_gpus": self._gpus, "max_restarts": 0}
        if self._outlives:  # workers continue if this process is killed
            options |= {"lifetime": "detached", "name": f"c4-{worker.id}"}
        actor = self._ray.remote(Actor).options(**options).remote()
        answer = actor.work.remote(self._command, worker, None if self._gpus else 1)
        actor.leave.remote()
        return RayJob(actor, answer)

    def stop(self, jobs: Sequence[Job]) -> None:
        for job in jobs:
            with suppress(Exception):  # it may have ended by itself
                self._ray.kill(job.actor)  # type: ignore[attr-defined]  # a RayJob
        if self._started:
            self._ray.shutdown()
