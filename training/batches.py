"""Batches: rows become arrays, with what is asked for in them and who sees whom."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from c4.store.arrays import BoolArray, FloatArray, IntArray
from training.codec import Codec
from training.lessons import shape_of
from training.masks import WeightArray, part_masked, semi_autoregressive, uniformly_masked
from training.rows import Row
from training.settings import Settings

Place = tuple[int, int]
"""A place in a phase's stream: pool, and number of the batch in the pool."""

NEVER = 2**30
"""Order of a position that nobody outside its group sees."""

IGNORED = -100
"""Target of a position without loss."""


@dataclass(frozen=True)
class Sight:
    """Who sees whom, where not everybody sees everybody. Arrays are (rows, length).

    A position sees those whose `order` its `limit` reaches, and those of its own `group`.
    """

    positions: IntArray
    """Rotary positions."""
    order: IntArray
    limit: IntArray
    group: IntArray
    """Positions of one group see each other; 0 stands for no group."""


@dataclass(frozen=True)
class Probe:
    """What stands behind a row and is asked for. All arrays have one length."""

    shown: IntArray
    """Tokens, and masks where they are asked for."""
    asked: IntArray
    """Tokens, IGNORED where they are shown."""
    place: IntArray
    """Where they would stand in the response."""
    limit: IntArray
    """`limit` and `group` mean what they mean in `Sight`."""
    group: IntArray


@dataclass(frozen=True)
class Batch:
    """Arrays of shape (rows, length). The model reads `inputs` and should predict `targets`."""

    inputs: IntArray
    targets: IntArray
    """IGNORED where there is no loss."""
    weights: FloatArray
    problems: Counter[str]
    """Number of rows of each task."""
    place: Place
    """Where the *next* batch is."""
    sight: Sight | None = None


@dataclass(frozen=True)
class BatchMaker:
    """Makes batches of rows that are all probed or all masked."""

    settings: Settings
    codec: Codec

    def batch(self, rows: Sequence[Row], rng: np.random.Generator, place: Place) -> Batch:
        """Arrays for these rows, with the weights of the loss."""
        make = self._probes if rows[0].probed else self._masked
        inputs, targets, weights, sight = make(rows, rng)
        numbers = np.isin(targets, self.codec.numbers)
        weights = weights * np.where(numbers, self.settings.number_weight, 1.0)
        asked = np.where(targets == IGNORED, 0, weights).astype(np.float32)
        problems = Counter(row.task for row in rows)
        return Batch(inputs, targets, asked, problems, place, sight)

    def _probes(
        self, rows: Sequence[Row], rng: np.random.Generator
    ) -> tuple[IntArray, IntArray, WeightArray, Sight]:
        """Rows with probes: every block of a response is asked for at once, from what precedes it.

        Behind a row stands a copy of its response, masked but for what is revealed. A block of
        the copy sees the prompt, the real response before the block, and itself: what block-wise
        decoding sees, but for the masked rest. The real response sees only what is before it,
        so that it tells nothing it could not know. Behind a row without a response stands every
        choice, its letter masked: which letter belongs to which text is hard to find out from
        one letter a row.
        """
        shape = (len(rows), max(row.cost for row in rows))
        inputs = np.full(shape, self.codec.end)
        targets, weights = np.full(shape, IGNORED), np.ones(shape)
        positions, limit, group = (np.zeros(shape, np.int64) for _ in range(3))
        order = np.full(shape, NEVER)
        for i, row in enumerate(rows):
            probe = self._ask_choices(row) if row.choices else self._ask_response(row, rng)
            stop = len(row.ids)
            real, copy = slice(0, stop), slice(stop, row.cost)
            inputs[i, real], inputs[i, copy] = row.ids, probe.shown
            targets[i, copy] = probe.asked
            positions[i, real], positions[i, copy] = np.arange(stop), row.prompt + probe.place
            order[i, real] = limit[i, real] = np.maximum(0, np.arange(stop) - row.prompt + 1)
            limit[i, copy], group[i, copy] = probe.limit, probe.group
            if row.has_letter:
                weights[i, stop] = self.settings.letter_weight
        return inputs, targets, weights, Sight(positions, order, limit, group)

    def _ask_response(self, row: Row, rng: np.random.Generator) -> Probe:
        """All blocks of a response, each from what stands before it."""
        answer = np.array(row.ids[row.prompt :])
        place = np.arange(len(answer))
        block = int(rng.choice(self.settings.probe_blocks))
        hidden = part_masked(len(answer), block, rng)
        return Probe(
            shown=np.where(hidden, self.codec.mask, answer),
            asked=np.where(hidden, answer, IGNORED),
            place=place,
            limit=place // block * block,
            group=place // block + 1,
        )

    def _ask_choices(self, row: Row) -> Probe:
        """Every choice's letter, from the prompt and the choice's text."""
        place = np.concatenate([np.arange(len(choice)) for choice in row.choices])
        line = np.concatenate(row.choices)
        return Probe(
            shown=np.where(place == 0, self.codec.mask, line),
            asked=np.where(place == 0, line, IGNORED),
            place=place,
            limit=np.zeros_like(place),
            group=np.cumsum(place == 0),
        )

    def _masked(
        self, rows: Sequence[Row], rng: np.random.Generator
    ) -> tuple[IntArray, IntArray, WeightArray, None]:
        """Rows masked in the sequence itself; the loss is on masked positions."""
        ids = np.full((len(rows), max(len(row.ids) for row in rows)), self.codec.end)
        for i, row in enumerate(rows):
            ids[i, : len(row.ids)] = row.ids
        masked, losses = np.zeros(ids.shape, np.bool_), np.zeros(ids.shape)
        weights = np.where(ids == self.codec.end, self.settings.end_weight, 1.0)
        for i, row in enumerate(rows):
            generated = ids.shape[1] - row.prompt
            hidden, loss = self._hide(row, generated, rng)
            masked[i, row.prompt :] = hidden
            losses[i, row.prompt :] = loss
            if not row.results:
                weights[i, row.prompt + row.response] = 1.0
            if row.has_letter:
                weights[i, row.prompt] = self.settings.letter_weight
        inputs = np.where(masked, self.codec.mask, ids)
        return inputs, np.where(losses > 0, ids, IGNORED), weights * losses, None

    def _hide(
        self, row: Row, generated: int, rng: np.random.Generator
    ) -> tuple[BoolArray, WeightArray]:
        """What is masked in a row, and the weight of the loss there; both (generated,)."""
        if row.results:
            hidden = np.isin(np.arange(generated) + row.prompt, row.results)
            return hidden, hidden.astype(float)
        if rng.random() < self.settings.uniform_share:
            return uniformly_masked(generated, rng)
        block = shape_of(row.task).block_length
        return semi_autoregressive(generated, block, row.response, rng)
