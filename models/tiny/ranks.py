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
    """Which of how many processes this one is."""

    rank: int = 0
    world: int = 1

    def sum_(self, tensor: Tensor) -> Tensor:
        """Add up over the processes, in place."""
        if self.world > 1:
            dist.all_reduce(tensor)
        return tensor

    def sum_gradients(self, params: list[nn.Parameter], scalars: Tensor) -> Tensor:
        """Add up gradients, in place, and a few numbers on the way. Returns the numbers' sums."""
        if self.world > 1:
            flat = torch.cat([param.grad.flatten() for param in params] + [scalars])
            dist.all_reduce(flat)
            pieces = flat.split([param.numel() for param in params] + [scalars.numel()])
            for param, piece in zip(params, pieces[:-1], strict=True):
                param.grad.copy_(piece.view_as(param))
            return pieces[-1]
        return scalars


def join(rank: int, world: int, meeting: str) -> Ranks:
    """Become one of the processes; all meet at a file."""
    if world > 1:
        dist.init_process_group("gloo", init_method=meeting, rank=rank, world_size=world)
    return Ranks(rank, world)


def _assist(rank: int, world: int, meeting: str, work: Callable[..., Any], args: Any) -> None:
    """An assistant ends when the first process does, and only then."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    work(join(rank, world, meeting), *args)


def run_ranks(world: int, work: Callable[..., Any], *args: Any) -> Any:
    """Run `work(ranks, *args)` in this process and in world-1 others; what it returned here."""
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
