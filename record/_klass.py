"""KLASS: commit what is confident and whose whole distribution has stopped moving."""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from c4.models import Reading, read_logits
from c4.record._commit import Block, Choice, Origin, Predictor, Rule, ScheduledCommits
from c4.record._parameters import parameter
from c4.record._types import BoolArray, FloatArray, IntArray

HISTORY = 2
"""Steps of the block at which a position must have been still."""


@dataclass(frozen=True)
class KLASS(Rule):
    """Confidence above τ and KL(p_t ‖ p_t−1) below ε at two steps running; else the schedule."""

    tau: float = parameter(0.7, high=1.0, meaning="confidence a position must exceed")
    epsilon: float = parameter(0.015, meaning="divergence a still position stays below, in nats")

    def start(self) -> "KLASSCommits":
        return KLASSCommits(self)


class KLASSCommits(ScheduledCommits):
    """The distributions of the step before and the divergences of the block's last steps."""

    def __init__(self, rule: KLASS) -> None:
        self.rule = rule
        self._before: Tensor | None = None
        self._before_start = 0

    def enter(self, block: Block) -> None:
        super().enter(block)
        self._moved: list[FloatArray] = []

    @torch.inference_mode()
    def read(self, predictor: Predictor, ids: IntArray, start: int) -> Reading:
        logits = predictor.logits(ids, start)  # (L, V)
        size = self.block.stop - self.block.start
        # The next block's too: its first step is compared with this block's last.
        now = logits[self.block.start : self.block.stop + size].log_softmax(-1)  # (≤2B, V)
        self._moved = [*self._moved, self._divergence(now[:size])][-HISTORY:]
        self._before, self._before_start = now, self.block.start
        return read_logits(logits, predictor.mask_id)

    def _divergence(self, now: Tensor) -> FloatArray:
        """KL of the block's distributions from those a step before; nothing is before step 1."""
        if self._before is None:
            return np.full(len(now), np.inf, dtype=np.float32)
        first = self.block.start - self._before_start
        before = self._before[first : first + len(now)]
        divergence: FloatArray = (now.exp() * (now - before)).sum(-1).cpu().numpy()
        return divergence

    def choose(self, step: int, reading: Reading, masked: BoolArray) -> Choice:
        block = slice(self.block.start, self.block.stop)
        ready = masked[block] & (reading.confidence[block] > self.rule.tau)
        still = np.all([moved < self.rule.epsilon for moved in self._moved], axis=0)
        chosen = self.block.start + np.flatnonzero(ready & still)
        if len(self._moved) == HISTORY and len(chosen):
            return Choice(chosen, Origin.ACCEPTED)
        return super().choose(step, reading, masked)
