"""Engines: ways to start workers, each of which repeats the user's own command.

An engine starts and stops workers; `supervise` replaces those that die. With every engine, workers
claim their trajectories from the run's folder. Any number of engines and commands can therefore
work on one run, and the run survives the death of any of them.
"""

import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Protocol

from c4.errors import C4Error, ConfigError, unknown_name
from c4.record.engines.worker import REFUSED, Command, Ended, Worker, this_worker
from c4.store.claims import Claims, mark_dead, read_aside
from c4.store.locations import Location

if TYPE_CHECKING:
    from c4.record.plan import RunConfig

ENGINES = {
    "local": "processes of this machine, one for each GPU",
    "ray": "actors of a Ray cluster; needs pip install 'c4-dlm[ray]'",
    "slurm": "an array of Slurm jobs; needs pip install 'c4-dlm[slurm]'",
}
MOST_PER_PROCESSOR = 8
"""Maximum of local workers per processor; a larger number is most likely a typing error."""
DEATHS_EACH = 4
"""Maximum of deaths without progress, per requested worker, before `supervise` gives up."""


class Job(Protocol):
    """A started worker; submitit's jobs and futures fit this protocol."""

    def done(self) -> bool: ...

    def result(self) -> Ended:
        """Return how the worker ended. Raises if it was killed."""


class Engine(Protocol):
    """A way to start workers."""

    name: str
    devices: Sequence[str]
    """One device for each worker."""
    poll_seconds: float
    """Seconds between two checks for workers that have ended."""

    def start(self, workers: Sequence[Worker]) -> Sequence[Job]: ...

    def stop(self, jobs: Sequence[Job]) -> None:
        """End the workers, which release their claims, and free the engine's own resources."""


@dataclass(frozen=True)
class EngineChoice:
    """The user's options for engine, workers and devices."""

    engine: str | None = None
    workers: int | None = None
    """None for one per GPU, or a single one on a CPU."""
    device: str = "auto"
    """One device, or several separated by commas."""
    ray_address: str | None = None
    """Address of a running cluster; None starts one on this machine."""
    slurm: Mapping[str, str] = field(default_factory=dict)
    """Parameters of submitit's executor."""

    def __post_init__(self) -> None:
        if self.engine is not None and self.engine not in ENGINES:
            raise unknown_name("engine", self.engine, ENGINES)
        processors = os.cpu_count() or 1
        if self.name == "local" and (self.workers or 1) > MOST_PER_PROCESSOR * processors:
            raise ConfigError(
                f"--workers {self.workers}: this machine has {processors} processors; give at "
                f"most {MOST_PER_PROCESSOR * processors}"
            )
        if self.ray_address and self.engine != "ray":
            raise ConfigError("--ray-address is for --engine ray; give that, too")
        if self.slurm and self.engine != "slurm":
            raise ConfigError("--slurm is for --engine slurm; give that, too")
        if self.engine in ("ray", "slurm") and "," in self.device:
            raise ConfigError(
                f"--device {self.device}: several devices are for --engine local; "
                f"{self.engine} gives each worker one GPU"
            )

    @property
    def name(self) -> str | None:
        """Name of the engine; None if this process does the work itself."""
        several = (self.workers or 1) > 1 or "," in self.device
        return self.engine or ("local" if several else None)

    def config(self, config: "RunConfig") -> "RunConfig":
        """Adapt a configuration to this process, which plans for its workers or decodes itself."""
        if self.name is None:
            return this_worker().config(config)
        if self.name == "local":
            return replace(config, device=config.device.partition(",")[0])
        return replace(config, elsewhere=True)


def open_engine(choice: EngineChoice, command: Command, *, on_gpu: bool = True) -> Engine:
    """Create the chosen engine.

    Args:
        on_gpu: whether the command can use GPUs.
    """
    if choice.name == "ray":
        from c4.record.engines.ray import RayEngine

        return RayEngine(command, choice, on_gpu=on_gpu)
    if choice.name == "slurm":
        from c4.record.engines.slurm import SlurmEngine

        return SlurmEngine(command, choice, on_gpu=on_gpu)
    from c4.record.engines.local import LocalEngine

    return LocalEngine(command, local_devices(choice, on_gpu=on_gpu))


def local_devices(choice: EngineChoice, *, on_gpu: bool) -> Sequence[str]:
    """Return a device of this machine for each worker."""
    from c4.models import resolve_devices

    devices = resolve_devices(choice.device) if on_gpu else ["cpu"]
    if devices == ["cpu"]:
        return devices * (choice.workers or 1)
    if choice.workers is not None and choice.workers > len(devices):
        raise ConfigError(
            f"--workers {choice.workers}: a device holds one model, and there are {len(devices)} "
            f"({', '.join(devices)}); give at most as many workers"
        )
    return devices[: choice.workers]


def supervise(
    engine: Engine,
    folders: Sequence[Location],
    count: Callable[[], int],
    since: int | None = None,
) -> dict[str, str]:
    """Start workers and replace those that die. Workers can continue if this process dies.

    Returns when no worker has work left, with the reason of each death by worker id.

    Args:
        folders: the folders of the runs that the workers write.
        count: returns how many items are done or given up; polled, so it may show the progress.
        since: see `Worker`.
    """
    failures: dict[str, str] = {}
    running: dict[int, tuple[Worker, Job]] = {}
    missing = list(range(len(engine.devices)))
    counted, deaths = -1, 0
    try:
        while running or missing:
            if missing:
                workers = [
                    Worker(engine=engine.name, device=engine.devices[i], reports=False, since=since)
                    for i in missing
                ]
                started = zip(workers, engine.start(workers), strict=True)
                running |= zip(missing, started, strict=True)
                missing = []
            for place in [place for place, (_, job) in running.items() if job.done()]:
                worker, job = running.pop(place)
                if reason := why_it_died(job):
                    failures[worker.id] = reason
                    mark_dead_everywhere(folders, worker, reason)
                    missing.append(place)
            if (now := count()) != counted:
                counted, deaths = now, 0
            deaths += len(missing)
            if deaths > DEATHS_EACH * len(engine.devices):
                raise C4Error(
                    f"{deaths} workers died one after another and got nothing done; the last: "
                    f"{failures.popitem()[1]}. What was finished is safe; give the same command "
                    "to go on"
                )
            time.sleep(engine.poll_seconds)
        return failures
    finally:
        engine.stop([job for _, job in running.values()])
        for worker, _ in running.values():
            mark_dead_everywhere(folders, worker, "stopped")
        for folder in folders:
            with Claims(folder) as claims:  # leaving removes the files of dead workers
                held = [one for one in claims.current().values() if not claims.is_lost(one)]
                claims.finished = not held and not read_aside(folder)


def why_it_died(job: Job) -> str:
    """Return why a worker ended before its work was done; empty if it was done.

    Raises if the worker refused the command, because every other worker would refuse it, too.
    """
    try:
        ended = job.result()
    except Exception as error:  # Ray and submitit raise many kinds for a worker that was killed
        first = next((line for line in str(error).split("\n") if line.strip()), "no reason given")
        return f"{type(error).__name__}: {first.strip()}"
    if ended.code == REFUSED:
        raise C4Error(ended.reason)
    return ended.reason


def mark_dead_everywhere(folders: Sequence[Location], worker: Worker, reason: str) -> None:
    for folder in folders:
        mark_dead(folder, worker.id, reason)
