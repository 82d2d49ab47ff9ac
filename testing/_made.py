"""Made-up decodes: steps of a byte-level model that wavers between answers, without any weights."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from tokenizers import Tokenizer, decoders, models, pre_tokenizers

from c4.gates.candidates import CandidateReader
from c4.gates.own_signals import NO_SIGNALS, OwnSignals
from c4.gates.signals import Signals, read_signals
from c4.gates.steps import StepView, fixed_point, stack_views
from c4.store.cells import Cells
from c4.tasks import TASKS, AnswerReading, Shape, Task
from c4.tasks.vocabulary import Vocabulary

SHAPE = Shape(length=16, budget=16, block_length=4)
TEXTS = ("B. It is 12 or 7", "A, that is 1 + 2", "So the answer 42", "no idea at all..")
"""What the made-up model may write: with letters, numbers, or neither."""
END = 256


def byte_vocabulary() -> Vocabulary:
    """Bytes as tokens, and an end token."""
    alphabet = {letter: i for i, letter in enumerate(sorted(pre_tokenizers.ByteLevel.alphabet()))}
    tokenizer = Tokenizer(models.BPE(vocab=alphabet, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens(["<|end|>"])
    return Vocabulary(tokenizer.to_str(), [END])


@dataclass(frozen=True)
class MadeTrajectory:
    """One made-up decode under the schedule, and what gates read of it."""

    task: Task
    views: list[StepView]
    reader: CandidateReader

    @property
    def cells(self) -> Cells:
        return stack_views(self.views)

    def signals(self, own: OwnSignals = NO_SIGNALS) -> Signals:
        """Arrays of (T,)."""
        return signals_of([self], own).one(0)


def made_trajectories() -> Iterator[MadeTrajectory]:
    """A few decodes of a numeric and of a lettered task."""
    vocabulary = byte_vocabulary()
    for name in ("gsm8k", "mmlu"):
        reader = CandidateReader(TASKS[name], vocabulary, SHAPE.length, AnswerReading())
        for seed in range(3):
            yield MadeTrajectory(TASKS[name], list(_steps(seed)), reader)


def signals_of(trajectories: list[MadeTrajectory], own: OwnSignals = NO_SIGNALS) -> Signals:
    """The signals of trajectories of one task, stacked. (n, T)"""
    cells = [trajectory.cells for trajectory in trajectories]
    names = vars(cells[0])
    stacked = Cells(**{name: np.stack([getattr(c, name) for c in cells]) for name in names})
    choices = [("no", "yes")] * len(cells)
    return read_signals(stacked, SHAPE, trajectories[0].reader, choices, own).signals


def same(a: np.ndarray, b: np.ndarray) -> bool:
    """Whether two arrays are equal, and no number in both where there is none."""
    return np.array_equal(a, b, equal_nan=a.dtype.kind == "f")


def _steps(seed: int) -> Iterator[StepView]:
    """Sixteen steps that commit one position each, block by block."""
    rng = np.random.default_rng(seed)
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    spelled = [[letters.index(x.replace(" ", "Ġ")) for x in text] for text in TEXTS]
    texts = np.array(spelled, dtype=np.int32)
    masked = np.ones(SHAPE.length, dtype=np.bool_)
    for step in range(SHAPE.budget):
        block = step // SHAPE.steps_per_block
        writes = texts[rng.integers(len(texts)) if rng.random() < 0.6 - step / 30 else seed]
        confidence = rng.beta(2 + step / 2, 2, SHAPE.length).astype(np.float32)
        yield StepView(
            step=step + 1,
            block=block,
            token=writes.copy(),
            confidence=fixed_point("confidence", confidence),
            gap=fixed_point("gap", confidence * 10),
            entropy=fixed_point("entropy", 1 - confidence),
            masked=masked.copy(),
        )
        masked[SHAPE.block_length * block + rng.permutation(_open(masked, block))[0]] = False


def _open(masked: np.ndarray, block: int) -> np.ndarray:
    start = block * SHAPE.block_length
    return np.flatnonzero(masked[start : start + SHAPE.block_length])
