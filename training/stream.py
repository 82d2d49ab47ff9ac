"""The stream of batches that a phase of the training sees, from any place on.

Batches are a pure function of the seed, the phase and their place in the stream, so a training
that stops resumes with exactly the batch it would have seen.
"""

from collections.abc import Iterator
from itertools import count

import numpy as np

from training.batches import Batch, BatchMaker, Place
from training.codec import Codec
from training.rows import Row, RowMaker
from training.settings import PhaseSettings, Settings


class Stream:
    """The batches of a phase. Problems come in pools, which are cut into batches."""

    def __init__(self, settings: Settings, codec: Codec, phase: PhaseSettings, number: int) -> None:
        self.settings = settings
        self.phase = phase
        self.number = number
        """Of the phase among all phases."""
        self.rows = RowMaker(settings, codec, phase)
        self.maker = BatchMaker(settings, codec)

    def batches(self, place: Place = (0, 0)) -> Iterator[Batch]:
        pool, first = place
        for number in count(pool):
            rng = np.random.default_rng([self.settings.seed, self.number, number])
            for i, rows in enumerate(self._groups(number, rng)):
                # Masks are drawn for the batches skipped as well, or resuming would shift them.
                made = self.maker.batch(rows, rng, (number, i + 1))
                if i >= first:
                    yield made
            first = 0

    def _groups(self, number: int, rng: np.random.Generator) -> list[list[Row]]:
        """A pool cut into groups of one kind and similar length, in random order."""
        rows = self._pool(number, rng)
        # A little out of order, so that a batch is not all of one task.
        noise = rng.uniform(0, self.settings.length_noise, len(rows))
        order = np.argsort(noise + [row.cost for row in rows])
        groups = []
        for kind in (True, False):
            groups += self._cut([rows[i] for i in order if rows[i].probed == kind])
        return [groups[i] for i in rng.permutation(len(groups))]

    def _pool(self, number: int, rng: np.random.Generator) -> list[Row]:
        """The rows of a pool as the phase's mixture draws them, sheets last."""
        names = list(self.phase.mixture)
        weights = np.array(list(self.phase.mixture.values()))
        size = self.settings.pool
        drawn = rng.choice(len(weights), size=size, p=weights / weights.sum())
        first = self.phase.first_problem + size * number
        probed = rng.random(size) < self.phase.probe_share
        rows = [
            self.rows.row(names[drawn[i]], first + i, bool(probed[i]), rng) for i in range(size)
        ]
        sheets = round(size * self.phase.sheet_share)
        return rows + [self.rows.sheet(rng) for _ in range(sheets)]

    def _cut(self, rows: list[Row]) -> list[list[Row]]:
        """Sorted rows cut into batches of the phase's size."""
        groups, at = [], 0
        while at < len(rows):
            longest = max(row.cost for row in rows[at : at + 32])
            fit = max(1, self.phase.batch_tokens // longest)
            # What would be left over joins the last batch: a batch of a few rows is all noise.
            fit = len(rows) - at if len(rows) - at < 1.25 * fit else fit
            groups.append(rows[at : at + fit])
            at += fit
        return groups
