"""WINO: accept many positions, then revoke those that a later verification does not confirm."""

from dataclasses import dataclass

import numpy as np

from c4.decode.commits import Block, Choice, Predictor, Rule, RuleState, accept, most_confident
from c4.errors import ConfigError
from c4.models import Reading
from c4.plugins.parameters import parameter
from c4.store.arrays import BoolArray, FloatArray, IntArray
from c4.tasks import Shape

ACCEPT_SHARE, ACCEPT_LEAST, ACCEPT_MOST = 0.7, 5, 20
"""Limit on the positions accepted at a step: a share of the masked ones, clamped to bounds."""


@dataclass(frozen=True)
class WINO(Rule):
    """Verify accepted tokens with a masked shadow of the block that cannot see its own tokens."""

    tau: float = parameter(0.6, high=1.0, meaning="confidence a position must exceed")
    tau_back: float = parameter(0.9, high=1.0, meaning="shadow probability a token must keep")

    def start(self) -> "WINOState":
        return WINOState(self)

    def check(self, shape: Shape, *, shift: bool) -> None:
        refuse_shift(shift)


class WINOState(RuleState):
    """The number of positions accepted last, and the shadow's probabilities of committed tokens.

    A step revokes at most one position fewer than the previous step accepted. In the long run every
    step thus gains a position, and a block of B positions takes at most B steps.
    """

    def __init__(self, rule: WINO) -> None:
        self.rule = rule

    def enter(self, block: Block) -> None:
        super().enter(block)
        self._accepted = 0
        self._shadow: FloatArray = np.empty(0, dtype=np.float32)

    def read(self, predictor: Predictor, ids: IntArray, start: int) -> Reading:
        refuse_shift(predictor.shift)
        size, length = self.block.stop - self.block.start, len(ids) - start
        twins = np.arange(start + self.block.start, start + self.block.stop)
        positions, attention = shadow_layout(len(ids), twins)
        shadowed = np.concatenate([ids, np.full(size, predictor.mask_id, dtype=np.int64)])
        logits = predictor.logits(shadowed, start, positions=positions, attention=attention)
        shadow = logits[length:].softmax(-1)  # (B, V)
        self._shadow = shadow[list(range(size)), ids[twins].tolist()].cpu().numpy()  # (B,)
        return predictor.interpret(logits[:length])

    def choose(self, step: int, reading: Reading, masked: BoolArray) -> Choice:
        open_positions = self.block.open_positions(masked)
        most = min(max(int(ACCEPT_SHARE * len(open_positions)), ACCEPT_LEAST), ACCEPT_MOST)
        sure = open_positions[reading.confidence[open_positions] > self.rule.tau]
        choice = accept(np.sort(most_confident(sure, reading, most)), open_positions, reading)
        last, self._accepted = self._accepted, len(choice.positions)
        if self._accepted == 1:
            return choice
        # Committed positions that the shadow does not confirm, least probable first.
        doubtful = ~masked[self.block.start : self.block.stop] & (self._shadow < self.rule.tau_back)
        found = np.flatnonzero(doubtful)
        disputed = self.block.start + found[np.argsort(self._shadow[found], kind="stable")]
        return Choice(choice.positions, choice.origin, disputed[: max(0, last - 1)])


def refuse_shift(shift: bool) -> None:
    if shift:
        raise ConfigError(
            "wino cannot run on a model that predicts a position from the one before, as Dream "
            "does: a shadow has no output of its own there; choose another --method"
        )


def shadow_layout(length: int, twins: IntArray) -> tuple[IntArray, BoolArray]:
    """Return positions and attention of a sequence followed by a shadow of some of its positions.

    The sequence does not attend to the shadow. The shadow attends to everything, itself included,
    except that no shadow row attends to the position that it stands for.
    """
    size = length + len(twins)
    attention = np.ones((size, size), dtype=np.bool_)
    attention[:length, length:] = False
    attention[np.arange(length, size), twins] = False
    return np.concatenate([np.arange(length), twins]), attention
