"""The denoiser: ids in; token, confidence, gap and entropy of every generated position out."""

from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from transformers import DynamicCache, PreTrainedModel

from c4.errors import ModelError

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float32]
BoolArray = npt.NDArray[np.bool_]

ENTROPY_ROWS = 64
"""Positions whose full softmax exists at one time; bounds memory at 100,000 tokens and more."""


@dataclass(frozen=True)
class Reading:
    """One forward pass, at every generated position, masked or not. Arrays are (L,)."""

    token: IntArray
    """The arg-max token; never the mask."""
    confidence: FloatArray
    """Its softmax probability at temperature 1."""
    gap: FloatArray
    """Top-1 minus top-2 logit."""
    entropy: FloatArray
    """Of the full softmax, in nats."""


@dataclass(frozen=True)
class Memory:
    """Keys and values that a full pass left at every position outside some rows."""

    cache: DynamicCache
    rows: IntArray
    """Consecutive positions of the sequence, to be computed anew."""


class Denoiser:
    """A loaded model, asked one sequence at a time."""

    def __init__(self, model: PreTrainedModel, *, mask_id: int, shift: bool) -> None:
        self.model = model
        self.mask_id = mask_id
        self.shift = shift

    @property
    def device(self) -> torch.device:
        return self.model.device

    @torch.inference_mode()
    def logits(
        self,
        ids: IntArray,
        start: int,
        *,
        positions: IntArray | None = None,
        attention: BoolArray | None = None,
        cache: DynamicCache | None = None,
    ) -> Tensor:
        """Float32 logits that predict positions `start` and up.

        Args:
            ids: the whole sequence, prompt first. (P+L,)
            positions: rotary position of every id, where they are not 0, 1, 2, … (P+L,)
            attention: whether query i may see key j. (P+L, P+L)
            cache: where the keys and values of this pass are kept.

        Returns:
            (L, V), on the model's device.
        """
        rows = torch.arange(start, len(ids), device=self.device)
        if self.shift:
            rows = (rows - 1).clamp(min=0)
        output = self.model(
            input_ids=self._batch(ids),
            position_ids=None if positions is None else self._batch(positions),
            attention_mask=None if attention is None else self._batch(attention[None]),
            **self._keep(rows),
            **_kept_in(cache),
        ).logits[0]  # (L, V), or (P+L, V) where the class cannot leave rows out
        chosen = output if len(output) == len(rows) else output[rows]
        return cast(Tensor, chosen.float())

    def read(
        self,
        ids: IntArray,
        start: int,
        *,
        positions: IntArray | None = None,
        attention: BoolArray | None = None,
    ) -> Reading:
        """What the model predicts at positions `start` and up; arguments as of `logits`."""
        logits = self.logits(ids, start, positions=positions, attention=attention)
        return read_logits(logits, self.mask_id)

    @torch.inference_mode()
    def remember(self, ids: IntArray, start: int, window: slice) -> tuple[Reading, Memory]:
        """A reading by a full pass, and what that pass knows of all positions outside a window.

        Args:
            window: generated positions, counted from `start`.
        """
        if not self.model.can_generate():
            raise ModelError(
                f"{type(self.model).__name__} keeps no keys and values: decode without a cache"
            )
        cache = DynamicCache()
        logits = self.logits(ids, start, cache=cache)
        first = max(0, start + window.start - self.shift)  # the output that predicts the window
        rows = np.arange(first, start + window.stop)
        outside = torch.from_numpy(np.delete(np.arange(len(ids)), rows)).to(self.device)
        for layer in cast(list[Any], cache.layers):
            layer.keys = layer.keys[..., outside, :]
            layer.values = layer.values[..., outside, :]
        return read_logits(logits, self.mask_id), Memory(cache, rows)

    @torch.inference_mode()
    def read_window(self, ids: IntArray, memory: Memory) -> Reading:
        """What the model would predict in the window if all else were as it is remembered. (B,)"""
        rows = memory.rows
        everything = np.ones((1, len(rows), len(ids)), dtype=np.bool_)
        output = self.model(
            input_ids=self._batch(ids[rows]),
            position_ids=self._batch(rows),
            attention_mask=self._batch(everything),
            **_kept_in(memory.cache),
        ).logits[0]
        memory.cache.crop(-len(rows))
        return read_logits(output[: len(rows) - self.shift].float(), self.mask_id)

    def _batch(self, array: npt.NDArray[np.generic]) -> Tensor:
        return torch.from_numpy(array).to(self.device)[None]

    def _keep(self, rows: Tensor) -> dict[str, Tensor]:
        # Decoder classes can skip the vocabulary projection of the prompt's rows.
        return {"logits_to_keep": rows} if self.model.can_generate() else {}


def _kept_in(cache: DynamicCache | None) -> dict[str, object]:
    # Masked language models do not know these arguments.
    return {} if cache is None else {"past_key_values": cache, "use_cache": True}


@torch.inference_mode()
def read_logits(logits: Tensor, mask_id: int) -> Reading:
    """Token, confidence, gap and entropy of every row. logits: (L, V), overwritten.

    Probabilities are of the full softmax. The mask is only ruled out as a prediction: a position
    that predicts to stay unknown has predicted nothing.
    """
    norm = logits.logsumexp(-1)  # (L,)
    mean = torch.cat([_mean_logit(rows) for rows in logits.split(ENTROPY_ROWS)])  # (L,)
    entropy = (norm - mean).clamp(min=0)
    logits[:, mask_id] = -torch.inf
    top, ids = logits.topk(2, dim=-1)  # (L, 2) each
    confidence = (top[:, 0] - norm).exp()
    # One transfer for the three signals, one for the tokens: a device waits twice a step, no more.
    signals = torch.stack([confidence, top[:, 0] - top[:, 1], entropy]).cpu().numpy()  # (3, L)
    return Reading(ids[:, 0].cpu().numpy(), signals[0], signals[1], signals[2])


def _mean_logit(logits: Tensor) -> Tensor:
    """The logits' mean under their own softmax. (R, V) -> (R,)"""
    return (logits.softmax(-1) * logits).sum(-1)
