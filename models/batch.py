"""Batched forward passes in which no sequence depends on the others or on its place in the batch.

Floating-point sums depend on the shape of a pass and on the kernel that the shape selects. So all
passes over prompts of one padded length have the same shape for any requests: prompts are padded
on the left, shorter requests on the right, and empty places hold a dummy. Attention hides the
padding, and a sequence has the same positions as when it is decoded alone.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from c4.errors import ConfigError
from c4.models._denoiser import Denoiser
from c4.models._reading import BoolArray, IntArray

STRIDE = 32
"""Prompts and passes are padded to a multiple of this. Must be even, because matrix products
treat the last of an odd number of rows differently from the others."""
MOST = 64
"""Maximum batch size that `auto` chooses."""
ROOM = 0.9
"""Maximum fraction of a device's memory that `auto` fills."""


def padded(length: int) -> int:
    """Round a length up to the next multiple of `STRIDE`."""
    return -(-length // STRIDE) * STRIDE


@dataclass(frozen=True)
class Request:
    """One sequence of a batched pass; its fields are the arguments of `Denoiser.logits`."""

    ids: IntArray
    start: int
    positions: IntArray | None = None
    attention: BoolArray | None = None


@dataclass(frozen=True, order=True)
class PassShape:
    """Shape of a pass. It depends on one request alone, not on the others in the batch."""

    width: int
    """Number of positions per sequence, including padding."""
    pairwise: bool
    """Whether the attention mask is per pair of positions instead of per key."""


class BatchDenoiser:
    """A denoiser that predicts up to `size` sequences at a time.

    Args:
        prompt: the padded length of the prompts.
        length: generated positions per sequence.
    """

    def __init__(self, denoiser: Denoiser, *, size: int, prompt: int, length: int) -> None:
        self.denoiser = denoiser
        self.size, self.prompt, self.length = size, prompt, length
        self._checked: set[PassShape] = set()

    def logits(self, requests: Sequence[Request | None]) -> list[Tensor | None]:
        """Compute the logits for each request's positions from its start on, in the model's dtype.

        Args:
            requests: one per place; None for an empty place.

        Returns:
            (L, V) each: a view that the next call does not overwrite.
        """
        answers: list[Tensor | None] = [None] * self.size
        for shape in sorted(
            {self._shape_of(request) for request in requests if request is not None}
        ):
            alike = [r if r is not None and self._shape_of(r) == shape else None for r in requests]
            self._check(shape)
            output = self._pass(alike, shape)
            for place, request in enumerate(alike):
                if request is not None:
                    answers[place] = output[place, : len(request.ids) - request.start]
        return answers

    def _shape_of(self, request: Request) -> PassShape:
        behind = max(self.length, len(request.ids) - request.start)
        return PassShape(self.prompt + padded(behind), request.attention is not None)

    @torch.inference_mode()
    def _pass(self, requests: Sequence[Request | None], shape: PassShape) -> Tensor:
        """Run one pass over all places. (size, width - prompt, V)"""
        size, width = self.size, shape.width
        ids = np.full((size, width), self.denoiser.mask_id, dtype=np.int64)
        positions = np.zeros((size, width), dtype=np.int64)
        # Padding and dummies attend to all keys: attention of a query without any key is NaN.
        sees = np.ones((size, 1, width if shape.pairwise else 1, width), dtype=np.bool_)
        for place, request in enumerate(requests):
            if request is not None:
                self._seat(request, ids[place], positions[place], sees[place, 0])
        rows = np.arange(self.prompt, width) - int(self.denoiser.shift)
        try:
            output: Tensor = self.denoiser.model(
                input_ids=self._tensor(ids),
                position_ids=self._tensor(positions),
                attention_mask=self._tensor(sees),
                logits_to_keep=self._tensor(np.maximum(rows, 0)),
            ).logits
        except torch.OutOfMemoryError as error:
            raise ConfigError(
                f"{size} sequences of {width} positions do not fit into the memory of "
                f"{self.denoiser.device}; give a smaller --batch, or --batch auto"
            ) from error
        return output

    def _seat(self, request: Request, ids: IntArray, positions: IntArray, sees: BoolArray) -> None:
        """Write a request to its place. ids, positions: (width,); sees: (1 or width, width)"""
        first = self.prompt - request.start
        own = slice(first, first + len(request.ids))
        ids[own] = request.ids
        given = request.positions
        positions[own] = np.arange(len(request.ids)) if given is None else given
        sees[:] = False
        sees[:, own] = True
        if request.attention is not None:
            sees[own, own] = request.attention

    def _tensor(self, array: IntArray | BoolArray) -> Tensor:
        return torch.from_numpy(array).to(self.denoiser.device)

    def _check(self, shape: PassShape) -> None:
        """Raise `ConfigError` if a sequence's logits depend on its place for this shape."""
        if shape in self._checked:
            return
        probes = [self._probe(shape, seed) for seed in range(2 * self.size)]
        first = self._pass([probes[0], *[None] * (self.size - 1)], shape)[0].clone()
        for place in {self.size // 2, self.size - 1}:
            others = probes[1 + place : 1 + place + self.size]
            others[place] = probes[0]
            if not torch.equal(self._pass(others, shape)[place], first):
                raise ConfigError(
                    f"on {self.denoiser.device} the numbers of a sequence depend on its place in "
                    f"a batch of {self.size}; give another --batch, or --batch 1"
                )
        self._checked.add(shape)

    def fits(self) -> bool:
        """Whether a full pass fits in `ROOM` of the CUDA device's memory."""
        device = self.denoiser.device
        shape = PassShape(self.prompt + padded(self.length), pairwise=True)
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats(device)
        try:
            output = self._pass([self._probe(shape, seed) for seed in range(self.size)], shape)
            self.denoiser.interpret(output[0].float())
        except (ConfigError, torch.OutOfMemoryError):
            return False
        _, total = torch.cuda.mem_get_info(device)
        return torch.cuda.max_memory_reserved(device) <= ROOM * total

    def _probe(self, shape: PassShape, seed: int) -> Request:
        """Make a request of random tokens that fills the shape except for some padding."""
        draw = np.random.default_rng(seed)
        start = self.prompt - int(draw.integers(0, min(STRIDE, self.prompt + 1)))
        ids = draw.integers(0, self.denoiser.model.config.vocab_size, start + self.length)
        everything = np.ones((len(ids), len(ids)), dtype=np.bool_) if shape.pairwise else None
        return Request(ids, start, attention=everything)


def find_batch(denoiser: Denoiser, *, prompt: int, length: int, most: int) -> int:
    """Find the batch size: the largest power of two that fits in a CUDA device's memory.

    On other devices it is 1: a CPU is hardly faster with a batch (docs/scale.md).

    Args:
        prompt: the padded length of the longest prompt.
        length: positions after the prompt, including those that a rule adds.
        most: number of sequences to decode; the batch size does not exceed it.
    """
    size = 1
    while denoiser.device.type == "cuda" and 2 * size <= min(MOST, most):
        batch = BatchDenoiser(denoiser, size=2 * size, prompt=prompt, length=length)
        if not batch.fits():
            break
        size *= 2
    return size
