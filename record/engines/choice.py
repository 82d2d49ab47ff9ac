"""Which engine a user wants, and with how many workers."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from c4.errors import ConfigError, unknown_name
from c4.record.engines.supervise import Engine
from c4.record.engines.work import share_of_threads

ENGINES = {
    "local": "processes of this machine, one for each GPU",
    "ray": "actors of a Ray cluster; needs pip install 'c4-dlm[ray]'",
    "slurm": "an array of Slurm jobs; needs pip install 'c4-dlm[slurm]'",
}
MOST_PER_PROCESSOR = 8
"""Local workers that a machine is given at most; more would only be a mistyped number."""
REMOTE = ("ray", "slurm")
"""Engines whose workers may come to machines that have other devices than this one."""


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

    @property
    def is_remote(self) -> bool:
        return self.name in REMOTE


def open_engine(choice: EngineChoice, *, on_gpu: bool = True) -> Engine:
    """The engine of a choice.

    Args:
        on_gpu: whether the job has a use for GPUs.
    """
    if choice.name == "ray":
        from c4.record.engines._ray import RayEngine

        return RayEngine(choice.ray_address, choice.workers, _one_device(choice), on_gpu=on_gpu)
    if choice.name == "slurm":
        from c4.record.engines._slurm import SlurmEngine

        return SlurmEngine(choice.workers or 1, _one_device(choice), choice.slurm, on_gpu=on_gpu)
    from c4.record.engines._local import LocalEngine

    if not on_gpu:
        return LocalEngine(["cpu"] * (choice.workers or 1), None)
    return LocalEngine(*_local_places(choice))


def _one_device(choice: EngineChoice) -> str:
    if "," in choice.device:
        raise ConfigError(
            f"--device {choice.device}: several devices are for --engine local; "
            f"{choice.name} gives each worker one GPU"
        )
    return choice.device


def _local_places(choice: EngineChoice) -> tuple[Sequence[str], int | None]:
    """A device for each worker, and the threads of each on a CPU."""
    from c4.models import resolve_devices

    devices = resolve_devices(choice.device)
    if devices == ["cpu"]:
        workers = choice.workers or 1
        return devices * workers, share_of_threads(workers)
    if choice.workers is not None and choice.workers > len(devices):
        raise ConfigError(
            f"--workers {choice.workers}: a device holds one model, and there are {len(devices)} "
            f"({', '.join(devices)}); give at most as many workers"
        )
    return devices[: choice.workers], None
