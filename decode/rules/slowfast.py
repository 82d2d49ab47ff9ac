"""SlowFast Sampling: estimate a span of confident positions, then fill that span quickly."""

from dataclasses import dataclass

import numpy as np

from c4.decode.commits import Block, Choice, Predictor, Rule, RuleState, accept, renew
from c4.errors import ConfigError
from c4.models import Reading
from c4.plugins.parameters import parameter
from c4.store.arrays import BoolArray, IntArray
from c4.store.origins import Origin
from c4.tasks import Shape

ENOUGH = 2
"""The fewest confident positions that are committed together."""


@dataclass(frozen=True)
class SlowFast(Rule):
    """Decode a block in cycles of a slow, exploring phase and a fast, filling phase."""

    explore: float = parameter(6, low=1, whole=True, meaning="passes of the slow phase")
    tau_span: float = parameter(0.3, high=1.0, meaning="confidence of the last position in a span")
    tau: float = parameter(0.9, high=1.0, meaning="confidence that commits positions together")
    window: float = parameter(
        2, low=1, whole=True, meaning="estimates that must agree before a span is fixed"
    )
    spread: float = parameter(
        1.0, meaning="standard deviation of the estimates below which a span is fixed"
    )
    cycles: float = parameter(
        256, low=1, whole=True, meaning="cycles in a block before the rest is filled"
    )
    truncate: bool = True
    """Whether the fast phase, from its second pass on, omits the positions after its span."""

    def start(self) -> "SlowFastState":
        return SlowFastState(self)

    def check(self, shape: Shape, *, shift: bool) -> None:
        if shift:
            raise ConfigError(
                "slowfast cannot run on a model that predicts a position from the one before, as "
                "Dream does: its release has another algorithm there (no blocks, other thresholds, "
                "other estimates), which c4 does not have; choose another --method"
            )


class SlowFastState(RuleState):
    """The current cycle: its start, its passes, and the end of its span once that is fixed."""

    def __init__(self, rule: SlowFast) -> None:
        self.rule = rule
        self._reading: Reading

    def enter(self, block: Block) -> None:
        super().enter(block)
        self._cycle = 0
        self._begin_cycle(block.start)

    def _begin_cycle(self, start: int) -> None:
        self._cycle += 1
        self._start = start
        self._passes = 0
        self._ends: list[int] = []
        self._fixed = False
        self._end = start

    @property
    def _fast_passes(self) -> int:
        """Number of passes of the fast phase so far; negative in the slow phase."""
        return self._passes - int(self.rule.explore)

    def read(self, predictor: Predictor, ids: IntArray, start: int) -> Reading:
        if self.rule.truncate and self._fast_passes >= 1:
            fresh = predictor.read(ids[: start + self._end], start)
            self._reading = renew(self._reading, fresh, slice(0, self._end))
        else:
            self._reading = predictor.read(ids, start)
        return self._reading

    def choose(self, step: int, reading: Reading, masked: BoolArray) -> Choice:
        fast = self._fast_passes >= 0
        self._passes += 1
        if not fast:
            self._explore(reading, masked)
        reach = self._end if fast else self.block.stop
        open_positions = self._start + np.flatnonzero(masked[self._start : reach])
        sure = open_positions[reading.confidence[open_positions] >= self.rule.tau]
        choice = accept(sure, open_positions, reading, least=ENOUGH)
        return self._end_cycle(choice, masked)

    def _end_cycle(self, choice: Choice, masked: BoolArray) -> Choice:
        """Begin the next cycle if this step fills the span; after the last one, fill the block."""
        left = masked.copy()
        left[choice.positions] = False
        if self._fast_passes < 0 or left[self._start : self._end].any():
            return choice
        if self._cycle >= self.rule.cycles:
            return Choice(self.block.open_positions(masked), Origin.FILL)
        self._begin_cycle(self._end)
        return choice

    def _explore(self, reading: Reading, masked: BoolArray) -> None:
        """Estimate the end of the cycle's span, unless earlier estimates already agreed."""
        if self._fixed:
            return
        # One past the last masked position that reaches `tau_span`; at least one position.
        scope = slice(self._start, self.block.stop)
        seen = masked[scope] & (reading.confidence[scope] >= self.rule.tau_span)
        self._ends.append(self._start + (int(np.flatnonzero(seen)[-1]) + 1 if seen.any() else 1))
        window = int(self.rule.window)
        latest = self._ends[-window:]
        self._fixed = len(latest) == window and bool(np.std(latest) < self.rule.spread)
        self._end = latest[-1] if self._fixed else int(np.mean(latest))
