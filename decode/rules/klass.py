"""KLASS: commit confident positions whose distributions have stopped changing."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from c4.decode.commits import Block, Choice, Predictor, Rule, accept
from c4.decode.rules.schedule import ScheduledState
from c4.errors import ConfigError
from c4.models import Reading
from c4.plugins.parameters import parameter
from c4.store.arrays import BoolArray, FloatArray, IntArray
from c4.tasks import Shape

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True)
class KLASS(Rule):
    """Commit at confidence > τ and KL(p_t ‖ p_t−1) < ε for several steps, else by the schedule.

    Shifted models, as in the release for Dream: confidence ≥ τ, else only the best position.
    """

    tau: float = parameter(0.7, high=1.0, meaning="confidence a position must exceed")
    epsilon: float = parameter(
        0.015, meaning="KL divergence below which a position is stable, in nats"
    )
    history: float = parameter(
        2, low=1, whole=True, meaning="steps running at which it must have been still"
    )

    def start(self) -> "KLASSState":
        return KLASSState(self)

    def check(self, shape: Shape, *, shift: bool) -> None:
        if shift and shape.blocks > 1:
            raise ConfigError(
                "on a model that predicts a position from the one before, as Dream does, klass "
                "follows its release, which has no blocks there: give --block-length "
                f"{shape.length}"
            )


class KLASSState(ScheduledState):
    """The previous step's distributions, and the divergences of the block's last steps."""

    def __init__(self, rule: KLASS) -> None:
        self.rule = rule
        self._before: Tensor | None = None
        self._before_start = 0
        self._shift = False

    def enter(self, block: Block) -> None:
        super().enter(block)
        self._moved: list[FloatArray] = []

    def read(self, predictor: Predictor, ids: IntArray, start: int) -> Reading:
        self._shift = predictor.shift
        logits = predictor.logits(ids, start)  # (L, V)
        size = self.block.stop - self.block.start
        # Includes the next block: its first step is compared with this block's last step.
        now = logits[self.block.start : self.block.stop + size].log_softmax(-1)  # (≤2B, V)
        history = int(self.rule.history)
        self._moved = [*self._moved, self._divergence(now[:size])][-history:]
        self._before, self._before_start = now, self.block.start
        return predictor.interpret(logits)

    def _divergence(self, now: "Tensor") -> FloatArray:
        """KL divergence of the block from the previous step, in nats; inf at step 1 of a decode."""
        if self._before is None:
            return np.full(len(now), np.inf, dtype=np.float32)
        first = self.block.start - self._before_start
        before = self._before[first : first + len(now)]
        divergence: FloatArray = (now.exp() * (now - before)).sum(-1).cpu().numpy()
        return divergence

    def choose(self, step: int, reading: Reading, masked: BoolArray) -> Choice:
        open_positions = self.block.open_positions(masked)
        confidence, tau = reading.confidence[open_positions], self.rule.tau
        confident = confidence >= tau if self._shift else confidence > tau
        ready = open_positions[confident & self._still[open_positions - self.block.start]]
        if len(ready) or self._shift:
            return accept(ready, open_positions, reading)
        return super().choose(step, reading, masked)

    @property
    def _still(self) -> BoolArray:
        """Whether each position of the block has been stable for long enough. (B,)"""
        enough = len(self._moved) == int(self.rule.history)
        return enough & np.all([moved < self.rule.epsilon for moved in self._moved], axis=0)
