"""Engines: ways to start workers, each of which gives the user's own command again.

An engine starts workers, says which have ended, and stops them. Whatever the engine, workers claim
their trajectories from the run's folder, so any number of engines and commands may work on one run,
and none of them needs to survive.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from c4.errors import ConfigError, unknown_name
from c4.record.engines.supervise import Engine, supervise
from c4.record.engines.worker import Command, Ended, Worker, this_worker

if TYPE_CHECKING:
    from c4.record.plan import RunConfig

__all__ = [
    "ENGINES",
    "Command",
    "Ended",
    "Engine",
    "EngineChoice",
    "Worker",
    "open_engine",
    "supervise",
    "this_worker",
]

ENGINES = {
    "local": "processes of this machine, one for each GPU",
    "ray": "actors of a Ray cluster; needs pip install 'c4-dlm[ray]'",
    "slurm": "an array of Slurm jobs; needs pip install 'c4-dlm[slurm]'",
}
MOST_PER_PROCESSOR = 8
"""Local workers per processor that a user may ask for; more would only be a mistyped number."""


@dataclass(frozen=True)
class EngineChoice:
    """What a user says about workers."""

    engine: str | None = None
    workers: int | None = None
    """None for one per GPU, or a single one on a CPU."""
    device: str = "auto"
    """One device, or several with commas between them."""
    ray_address: str | None = None
    """Address of a running cluster; None starts one on this machine."""
    slurm: Mapping[str, str] = field(default_factory=dict)
    """Parameters of submitit's executor."""

    def __post_init__(self) -> None:
        most = MOST_PER_PROCESSOR * (os.cpu_count() or 1)
        if self.name == "local" and (self.workers or 1) > most:
            raise ConfigError(
                f"--workers {self.workers}: this machine has {os.cpu_count()} processors; give at "
                f"most {most}"
            )
        if self.engine is not None and self.engine not in ENGINES:
            raise unknown_name("engine", self.engine, ENGINES)
        for option, given, engine in (
            ("--ray-address", self.ray_address, "ray"),
            ("--slurm", self.slurm, "slurm"),
        ):
            if given and self.engine != engine:
                raise ConfigError(f"{option} is for --engine {engine}; give that, too")

    @property
    def name(self) -> str | None:
        """The engine; None if this process is to do the work itself."""
        several = (self.workers or 1) > 1 or "," in self.device
        return self.engine or ("local" if several else None)

    def config(self, config: "RunConfig") -> "RunConfig":
        """A configuration as this process plans it: for its workers, or to decode by itself."""
        if self.name is None:
            return this_worker().config(config)
        if self.name == "local":
            return replace(config, device=config.device.partition(",")[0])
        return replace(config, elsewhere=True)


def open_engine(choice: EngineChoice, command: Command, *, on_gpu: bool = True) -> Engine:
    """Get the engine of a choice ready.

    Args:
        on_gpu: whether the command has a use for GPUs.
    """
    if choice.name in ("ray", "slurm") and "," in choice.device:
        raise ConfigError(
            f"--device {choice.device}: several devices are for --engine local; "
            f"{choice.name} gives each worker one GPU"
        )
    if choice.name == "ray":
        from c4.record.engines.ray import RayEngine

        return RayEngine(command, choice, on_gpu=on_gpu)
    if choice.name == "slurm":
        from c4.record.engines.slurm import SlurmEngine

        return SlurmEngine(command, choice, on_gpu=on_gpu)
    from c4.record.engines.local import LocalEngine

    devices = local_devices(choice) if on_gpu else ["cpu"] * (choice.workers or 1)
    return LocalEngine(command, devices)


def local_devices(choice: EngineChoice) -> list[str]:
    """A device of this machine for each worker."""
    from c4.models import resolve_devices

    devices = resolve_devices(choice.device)
    if devices == ["cpu"]:
        return devices * (choice.workers or 1)
    if choice.workers is not None and choice.workers > len(devices):
        raise ConfigError(
            f"--workers {choice.workers}: a device holds one model, and there are {len(devices)} "
            f"({', '.join(devices)}); give at most as many workers"
        )
    return list(devices[: choice.workers])
