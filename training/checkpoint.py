"""The one file a training resumes from."""

import os
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch

from training.batches import Batch, Place


@dataclass
class Progress:
    """Where the training stands; all of it is in the checkpoint."""

    phase: int = 0
    step: int = 0
    """Updates made in this phase; everything below is counted within the phase too."""
    seconds: float = 0.0
    tokens: int = 0
    problems: Counter[str] = field(default_factory=Counter)
    """Number of rows seen of each task."""
    place: Place = (0, 0)
    """Where the next batch is."""

    def count(self, batch: Batch) -> None:
        """Take note of an update with this batch."""
        self.step += 1
        self.tokens += batch.inputs.size
        self.problems += batch.problems
        self.place = batch.place


@dataclass(frozen=True)
class Saved:
    """What a checkpoint holds."""

    model: dict[str, torch.Tensor]
    optimizers: list[dict[str, Any]]
    progress: Progress


class Checkpoint:
    """The checkpoint in a training's work folder."""

    def __init__(self, folder: Path, every: float = 60.0) -> None:
        self.path = folder / "checkpoint.pt"
        self.every = every
        self._saved = time.monotonic()

    def due(self) -> bool:
        return time.monotonic() - self._saved >= self.every

    def save(
        self,
        model: torch.nn.Module,
        optimizers: Sequence[torch.optim.Optimizer],
        progress: Progress,
    ) -> None:
        """Replace the file in one move: a killed training finds the old one or the new one."""
        part = self.path.with_suffix(".part")
        state = {
            "model": model.state_dict(),
            "optimizers": [optimizer.state_dict() for optimizer in optimizers],
            "progress": asdict(progress) | {"problems": dict(progress.problems)},
        }
        torch.save(state, part)
        os.replace(part, self.path)
        self._saved = time.monotonic()

    def load(self) -> Saved | None:
        """What was saved last; None before the first time."""
        if not self.path.exists():
            return None
        state = torch.load(self.path, weights_only=True)
        progress = Progress(**state["progress"])
        progress.problems = Counter(progress.problems)
        return Saved(state["model"], state["optimizers"], progress)
