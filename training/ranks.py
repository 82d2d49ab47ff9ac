"""Training processes that work in step: each takes a share of every batch.

One single-threaded process per core loses far less to other programs than one process with a
thread per core, whose every operation waits for the slower thread.
"""

import multiprocessing as mp
import signal
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn


@dataclass(frozen=True)
class Ranks:
    """The number of this process, and how many there are."""

    rank: int = 0
    world: int = 1

    @property
    def first(self) -> bool:
        """Whether this is the process that writes files and keeps the clock."""
        return self.rank == 0

    def sum_(self, tensor: Tensor) -> Tensor:
        """Add up over the processes, in place."""
        if self.world > 1:
            dist.all_reduce(tensor)
        return tensor

    def sum_gradients(self, params: list[nn.Parameter], scalars: Tensor) -> Tensor:
        """Add up gradients in place; returns the sums of a few numbers that travel with them."""
        if self.world > 1:
            gradients = [param.grad for param in params if param.grad is not None]
            flat = torch.cat([gradient.flatten() for gradient in gradients] + [scalars])
            dist.all_reduce(flat)
            pieces = flat.split([gradient.numel() for gradient in gradients] + [scalars.numel()])
            for gradient, piece in zip(gradients, pieces[:-1], strict=True):
                gradient.copy_(piece.view_as(gradient))
            return pieces[-1]
        return scalars


def join(rank: int, world: int, meeting: str) -> Ranks:
    """Join the other processes, which all meet at one file."""
    if world > 1:
        dist.init_process_group("gloo", init_method=meeting, rank=rank, world_size=world)
    return Ranks(rank, world)


def _assist(rank: int, world: int, meeting: str, work: Callable[..., Any], args: Any) -> None:
    """An assistant ends when the first process does, and only then."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    work(join(rank, world, meeting), *args)


def run_ranks(world: int, work: Callable[..., Any], *args: Any) -> Any:
    """Run `work(ranks, *args)` in this process and in world-1 others; returns this one's result."""
    with tempfile.TemporaryDirectory() as folder:
        meeting = (Path(folder) / "meeting").as_uri()
        context = mp.get_context("spawn")
        others = [
            context.Process(target=_assist, args=(rank, world, meeting, work, args), daemon=True)
            for rank in range(1, world)
        ]
        for other in others:
            other.start()
        result = work(join(0, world, meeting), *args)
        for other in others:
            other.join()
        return result
