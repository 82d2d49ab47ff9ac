"""The loss of a batch: weighted cross-entropy where something is asked for."""

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy
from transformers import LlamaForCausalLM

from training.batches import Batch
from training.ranks import Ranks


def batch_loss(model: LlamaForCausalLM, batch: Batch, ranks: Ranks) -> Tensor:
    """The part of this process in the weighted cross-entropy; the parts add up to the batch's.

    The head is applied only where there is a loss.
    """
    mine = slice(ranks.rank, None, ranks.world)
    if not len(batch.inputs[mine]):  # a batch of one row leaves the other process without a row
        return sum((param.sum() for param in model.parameters()), torch.zeros(())) * 0.0
    targets = torch.from_numpy(batch.targets[mine]).flatten()
    weights = torch.from_numpy(batch.weights[mine]).flatten()
    chosen = (weights > 0).nonzero().squeeze(1)
    inputs = torch.from_numpy(batch.inputs[mine])
    hidden = model.model(input_ids=inputs, **sight_of(batch, mine))[0]  # (rows, length, width)
    logits = model.lm_head(hidden.flatten(0, 1)[chosen])  # (chosen, vocabulary)
    losses = cross_entropy(logits, targets[chosen], reduction="none")
    return (losses * weights[chosen]).sum() / float(batch.weights.sum())


def sight_of(batch: Batch, mine: slice) -> dict[str, Tensor]:
    """Positions and attention of a batch in which not everybody sees everybody."""
    if batch.sight is None:
        return {}
    arrays = (batch.sight.positions, batch.sight.order, batch.sight.limit, batch.sight.group)
    positions, order, limit, group = (torch.from_numpy(array[mine]) for array in arrays)
    before = order[:, None, :] <= limit[:, :, None]  # (rows, length, length)
    together = (group[:, None, :] == group[:, :, None]) & (group[:, :, None] > 0)
    return {"position_ids": positions, "attention_mask": (before | together)[:, None]}
