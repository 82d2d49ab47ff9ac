"""The denoiser: maps ids to token, confidence, gap and entropy at every generated position."""

from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from transformers import DynamicCache, PreTrainedModel

from c4.errors import ModelError
from c4.models._reading import BoolArray, IntArray, Reading

ROWS_AT_A_TIME = 64
"""Number of positions whose full softmax is in memory at once; vocabularies may be large."""
LOWEST = -1e30
"""Replaces logits of minus infinity, because their product with a weight of 0 is NaN."""


@dataclass(frozen=True)
class KeyValues:
    """Keys and values of a full forward pass, at all positions except `rows`."""

    cache: DynamicCache
    outside: IntArray
    """Positions whose keys and values are kept, in order."""
    rows: IntArray
    """Other positions, which later passes recompute, in order."""


class Denoiser:
    """A loaded model that predicts one sequence at a time."""

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
        """Compute the float32 logits that predict the positions from `start` on.

        Args:
            ids: the whole sequence, prompt first. (P+L,)
            positions: rotary position of every id; 0, 1, 2, … if None. (P+L,)
            attention: whether query i may attend to key j. (P+L, P+L)
            cache: receives the keys and values of this pass.

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
            # Decoder classes can skip the vocabulary projection of the prompt's rows.
            **({"logits_to_keep": rows} if self.model.can_generate() else {}),
            **_kept_in(cache),
        ).logits[0]  # (L, V), or (P+L, V) if the class computes all rows
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
        """Predict the positions from `start` on. Arguments as in `logits`."""
        return self.interpret(self.logits(ids, start, positions=positions, attention=attention))

    def interpret(self, logits: Tensor) -> Reading:
        """Turn logits into a reading. logits: (L, V), overwritten."""
        return read_logits(logits, self.mask_id)

    @torch.inference_mode()
    def remember(
        self,
        ids: IntArray,
        start: int,
        rows: IntArray,
        *,
        positions: IntArray | None = None,
        attention: BoolArray | None = None,
    ) -> tuple[Tensor, KeyValues]:
        """Return the logits of a full forward pass, and its keys and values except at `rows`.

        Args:
            rows: positions of the sequence that later passes recompute, in order.
        """
        if not self.model.can_generate():
            raise ModelError(
                f"{type(self.model).__name__} keeps no keys and values: decode without a cache"
            )
        cache = DynamicCache()
        logits = self.logits(ids, start, positions=positions, attention=attention, cache=cache)
        outside = np.delete(np.arange(len(ids)), rows)
        kept = torch.from_numpy(outside).to(self.device)
        for layer in cast(list[Any], cache.layers):
            layer.keys = layer.keys[..., kept, :]
            layer.values = layer.values[..., kept, :]
        return logits, KeyValues(cache, outside, rows)

    @torch.inference_mode()
    def recall(
        self,
        ids: IntArray,
        memory: KeyValues,
        *,
        positions: IntArray | None = None,
        attention: BoolArray | None = None,
    ) -> Tensor:
        """Compute float32 outputs at the rows of a memory, with its keys and values elsewhere.

        Output i predicts position i, or i+1 if the model is shifted.

        Args:
            ids: the whole sequence, or a prefix: positions after it are hidden. (≤P+L,)

        Returns:
            (R, V), for the R rows within `ids`.
        """
        rows = memory.rows[memory.rows < len(ids)]
        hidden = memory.outside >= len(ids)
        sees = (
            np.ones((len(rows), len(ids)), dtype=np.bool_) if attention is None else attention[rows]
        )
        outside = np.zeros((len(rows), len(hidden)), dtype=np.bool_)
        outside[:, ~hidden] = sees[:, memory.outside[~hidden]]
        output = self.model(
            input_ids=self._batch(ids[rows]),
            position_ids=self._batch(rows if positions is None else positions[rows]),
            attention_mask=self._batch(np.concatenate([outside, sees[:, rows]], axis=1)[None]),
            **_kept_in(memory.cache),
        ).logits[0]
        memory.cache.crop(-len(rows))
        return cast(Tensor, output.float())

    def _batch(self, array: npt.NDArray[np.generic]) -> Tensor:
        return torch.from_numpy(array).to(self.device)[None]


def _kept_in(cache: DynamicCache | None) -> dict[str, object]:
    # Masked language models do not accept these arguments.
    return {} if cache is None else {"past_key_values": cache, "use_cache": True}


@torch.inference_mode()
def read_logits(logits: Tensor, mask_id: int) -> Reading:
    """Compute token, odds, confidence, gap and entropy of every row. logits: (L, V), overwritten.

    Probabilities use the full softmax, including the mask token. The mask is excluded only as the
    predicted token, because predicting it predicts nothing.
    """
    highest = logits.amax(-1)  # (L,)
    masks = logits[:, mask_id].clone()
    logits[:, mask_id] = -torch.inf
    top, ids = logits.topk(2, dim=-1)  # (L, 2) each
    logits[:, mask_id] = masks
    some = (rows.split(ROWS_AT_A_TIME) for rows in (logits, highest, ids[:, 0]))
    spread = [_spread(*rows) for rows in zip(*some, strict=True)]
    odds, entropy = (torch.cat(column) for column in zip(*spread, strict=True))
    confidence = 1 / (1 + odds)
    # One transfer for the signals and one for the tokens, so only two device waits per step.
    signals = (
        torch.stack([odds, confidence, top[:, 0] - top[:, 1], entropy]).cpu().numpy()
    )  # (4, L)
    if not np.isfinite(signals[1:]).all():
        position = int(np.flatnonzero(~np.isfinite(signals[1:]).all(axis=0))[0])
        raise ModelError(
            f"the model's output is not a number at generated position {position}: its weights are "
            "damaged, or too large for its number format; try --dtype float32"
        )
    return Reading(ids[:, 0].cpu().numpy(), *signals)


def _spread(logits: Tensor, highest: Tensor, token: Tensor) -> tuple[Tensor, Tensor]:
    """Odds against one token of each row, and the row's entropy. logits: (R, V); others: (R,)

    The weights of the other tokens are summed without the token's own, so small odds stay precise.
    """
    below = logits - highest[:, None]  # at most 0
    weight = below.exp()
    mean = (weight * below.clamp(min=LOWEST)).sum(-1)  # a token with logit -inf contributes 0
    own = weight.gather(1, token[:, None])
    others = weight.scatter_(1, token[:, None], 0).sum(-1)
    total = own[:, 0] + others
    return others / own[:, 0], (total.log() - mean / total).clamp(min=0)
