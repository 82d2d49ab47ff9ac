"""Which positions of a response are masked, and where a loss is put."""

import numpy as np
import numpy.typing as npt

from c4.store.arrays import BoolArray

WeightArray = npt.NDArray[np.float64]
"""Weight of the loss at every position; 0 where there is none."""


def uniformly_masked(generated: int, rng: np.random.Generator) -> tuple[BoolArray, WeightArray]:
    """A random share masked, and the loss's weight; both (generated,)."""
    hidden = rng.random(generated) < rng.random()
    return hidden, hidden.astype(float)


def part_masked(generated: int, block: int, rng: np.random.Generator) -> BoolArray:
    """What is masked where every block is at some point of being filled. (generated,)

    Half of the blocks are masked whole; of the others at least one position is masked.
    """
    hidden = np.ones(generated, np.bool_)
    for start in range(0, generated, block):
        size = min(block, generated - start)
        if size > 1 and rng.random() < 0.5:
            shown = rng.choice(size, int(rng.integers(1, size)), replace=False)
            hidden[start + shown] = False
    return hidden


def semi_autoregressive(
    generated: int, block: int, response: int, rng: np.random.Generator
) -> tuple[BoolArray, WeightArray]:
    """Masks as block-wise decoding meets them, and the loss's weight; both (generated,).

    A clean prefix, one block partly masked, everything behind it masked; loss on the masked
    positions of that block and on the next block. Blocks of end tokens only are rare: they
    are learned at once.
    """
    last = generated - 1 if rng.random() < 0.1 else min(response, generated - 1)
    start = int(rng.integers(0, last // block + 1)) * block
    stop = min(start + block, generated)
    hidden = np.zeros(generated, np.bool_)
    hidden[stop:] = True
    size = stop - start
    masked = size if rng.random() < 0.15 else int(rng.integers(1, size + 1))
    hidden[start + rng.choice(size, masked, replace=False)] = True
    loss = hidden.astype(float)
    loss[stop + block :] = 0
    return hidden, loss
