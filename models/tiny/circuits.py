"""A start from which copying and looking up are soon learned.

From random weights a small network spends most of a short training on finding out that attention
can compare neighbours: the reward comes only when several heads do their part at once. Here they do
from the first step, if badly. Two heads of the first layer look at the token before and at the
token behind; two heads of the second look where that token is the same as their own. So a mask
before ` tadpole` already looks at the `D.` of `D. tadpole`, and a mask behind a name at what
followed it in the prompt. For some minutes they are held still, or the first large updates would
undo them before anything has learned to use them; then they are trained as all the rest.
"""

import math

import torch
from torch import Tensor, nn
from transformers import LlamaForCausalLM

CONSTANT = 4.0
"""Of the first feature, the same for all tokens: the rest have a variance of 1."""
SHARPNESS = 5.0
"""Nats by which a neighbour is preferred to the next position."""
CARRIED = 3.0
"""How loud a neighbour is, relative to the token itself."""
FAST = 6
"""Rotary frequencies that tell neighbours apart."""
SLOW = 8
"""From this frequency on, a few dozen positions hardly turn a vector."""
LIKENESS = 0.75
"""How much a head looks where the same was carried: little enough to look beyond itself."""
OFFSETS = (-1, 1)


@torch.no_grad()
def start_circuits(model: LlamaForCausalLM, std: float) -> None:
    """Set embeddings, with this standard deviation, and two heads of the first two layers."""
    embeddings = model.model.embed_tokens.weight
    embeddings.normal_(std=std)
    embeddings[:, 0] = CONSTANT * std
    first, second = (layer.self_attn for layer in model.model.layers[:2])
    size = first.head_dim
    frequencies = model.config.rope_parameters["rope_theta"] ** (
        -torch.arange(size // 2) / (size // 2)
    )
    for head, offset in enumerate(OFFSETS):
        rows = slice(head * size, (head + 1) * size)
        _look_at_neighbour(first, rows, offset, frequencies)
        _look_for_the_same(second, rows, carried=_carry(first, rows, CARRIED * std))
        _carry(second, rows, std)


def hold_circuits(model: LlamaForCausalLM) -> None:
    """Take from the gradients what would change them. To be called before every update."""
    model.model.embed_tokens.weight.grad[:, 0] = 0
    first, second = (layer.self_attn for layer in model.model.layers[:2])
    heads = slice(0, len(OFFSETS) * first.head_dim)
    for projection in (first.q_proj, first.k_proj, first.v_proj, second.q_proj, second.k_proj):
        projection.weight.grad[heads] = 0
    first.o_proj.weight.grad[:, heads] = 0


def _look_at_neighbour(attention: nn.Module, rows: slice, offset: int, frequencies: Tensor) -> None:
    """Queries and keys of the constant feature alone, turned so that they meet at the offset."""
    width = attention.q_proj.weight.shape[1]
    constant = CONSTANT / math.sqrt((width - 1 + CONSTANT**2) / width)  # behind the norm
    size = rows.stop - rows.start
    fast = frequencies[:FAST]
    contrast = float((1 - torch.cos(fast)).sum())
    loud = math.sqrt(SHARPNESS * math.sqrt(size) / contrast) / constant
    query, key = torch.zeros(size), torch.zeros(size)
    query[:FAST] = loud
    key[:FAST] = loud * torch.cos(offset * fast)
    key[size // 2 : size // 2 + FAST] = -loud * torch.sin(offset * fast)
    for projection, vector in ((attention.q_proj, query), (attention.k_proj, key)):
        projection.weight[rows] *= 0.1
        projection.weight[rows, 0] = vector


def _carry(attention: nn.Module, rows: slice, scale: float) -> Tensor:
    """Values and output that carry some of the features. Returns where to: (width - 1, size)."""
    width, size = attention.v_proj.weight.shape[1], rows.stop - rows.start
    read, write = (torch.linalg.qr(torch.randn(width - 1, size))[0] for _ in range(2))
    attention.v_proj.weight[rows] = 0
    attention.v_proj.weight[rows, 1:] = read.T
    attention.o_proj.weight[:, rows] = 0
    attention.o_proj.weight[1:, rows] = scale * write
    return write


def _look_for_the_same(attention: nn.Module, rows: slice, carried: Tensor) -> None:
    """Queries and keys that read what was carried, where rotation hardly disturbs it."""
    size = rows.stop - rows.start
    slow = [i for i in range(size) if i % (size // 2) >= SLOW]
    read = torch.zeros(size, attention.q_proj.weight.shape[1])
    read[slow, 1:] = LIKENESS * carried.T[: len(slow)]
    attention.q_proj.weight[rows] = read
    attention.k_proj.weight[rows] = read
