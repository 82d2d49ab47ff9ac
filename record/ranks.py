"""The place of a process among those that `srun`, `torchrun` or `accelerate launch` started.

It chooses the device and who reports, and never divides the work: claims do.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass

RANK = ("RANK", "SLURM_PROCID")
LOCAL_RANK = ("LOCAL_RANK", "SLURM_LOCALID")
SIZE = ("WORLD_SIZE", "SLURM_NTASKS")


@dataclass(frozen=True)
class Rank:
    """Which of several processes this is."""

    number: int = 0
    """Among all; the first reports."""
    local: int = 0
    """Among those on this machine; it chooses the GPU."""
    size: int = 1

    @property
    def reports(self) -> bool:
        return self.number == 0

    def device(self, asked: str, gpus: int) -> str:
        """The device of this process, if the user leaves the choice.

        Args:
            gpus: how many can be seen from here.
        """
        if self.size > 1 and gpus > 1 and asked in ("auto", "cuda"):
            return f"cuda:{self.local % gpus}"
        return asked


def read_rank(environment: Mapping[str, str] | None = None) -> Rank:
    """The rank that a launcher has put into the environment; that of a lone process otherwise."""
    given = os.environ if environment is None else environment
    number, local, size = (_first(given, names) for names in (RANK, LOCAL_RANK, SIZE))
    if number is None or size is None or size < 2:
        return Rank()
    return Rank(number, local or 0, size)


def _first(environment: Mapping[str, str], names: tuple[str, ...]) -> int | None:
    for name in names:
        if environment.get(name, "").isdecimal():
            return int(environment[name])
    return None
