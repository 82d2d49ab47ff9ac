"""Starting weights from which copying and looking up are learned quickly.

From random weights a small network spends most of a short training on finding out that attention
can compare neighbours: the reward comes only when several heads do their part at once. Here they do
from the first step, if badly. Two heads of the first layer look at the token before and at the
token behind; two heads of the second look where that token is the same as their own. So a mask
before ` tadpole` already looks at the `D.` of `D. tadpole`, and a mask behind a name at what
followed it in the prompt. For some minutes it is held where these heads look, and what the first
two carry, or the first large updates would undo it before anything has learned to use it; then all
is trained.
"""

import math

import torch
from torch import Tensor
from transformers import LlamaForCausalLM
from transformers.models.llama.modeling_llama import LlamaAttention

from training.settings import CircuitSettings

OFFSETS = (-1, 1)
"""Where the neighbours of a token are; each has one head in each of the first two layers."""


@torch.no_grad()
def start_circuits(model: LlamaForCausalLM, settings: CircuitSettings, std: float) -> None:
    """Set embeddings, with this standard deviation, and two heads of the first two layers."""
    embeddings = model.model.embed_tokens.weight
    embeddings.normal_(std=std)
    embeddings[:, 0] = settings.constant * std
    first, second = (layer.self_attn for layer in model.model.layers[:2])
    size = first.head_dim
    rope = model.config.rope_parameters or {}
    frequencies = rope["rope_theta"] ** (-torch.arange(size // 2) / (size // 2))
    for i, offset in enumerate(OFFSETS):
        head = slice(i * size, (i + 1) * size)
        _look_at_neighbour(first, head, offset, frequencies, settings)
        carried = _carry(first, head, settings.carried * std)
        _look_for_the_same(second, head, carried, settings)
        _carry(second, head, std)


def hold_circuits(model: LlamaForCausalLM) -> None:
    """Zero the gradients that would change where the heads look and what the first two carry."""
    model.model.embed_tokens.weight.grad[:, 0] = 0
    first, second = (layer.self_attn for layer in model.model.layers[:2])
    heads = slice(0, len(OFFSETS) * first.head_dim)
    for projection in (first.q_proj, first.k_proj, first.v_proj, second.q_proj, second.k_proj):
        projection.weight.grad[heads] = 0
    first.o_proj.weight.grad[:, heads] = 0


def _look_at_neighbour(
    attention: LlamaAttention,
    head: slice,
    offset: int,
    frequencies: Tensor,
    settings: CircuitSettings,
) -> None:
    """Set queries and keys to the constant feature alone, rotated to meet at the offset."""
    width = attention.q_proj.weight.shape[1]
    variance = (width - 1 + settings.constant**2) / width
    constant = settings.constant / math.sqrt(variance)  # behind the norm
    size = head.stop - head.start
    fast = frequencies[: settings.fast]
    contrast = float((1 - torch.cos(fast)).sum())
    loud = math.sqrt(settings.sharpness * math.sqrt(size) / contrast) / constant
    query, key = torch.zeros(size), torch.zeros(size)
    query[: settings.fast] = loud
    key[: settings.fast] = loud * torch.cos(offset * fast)
    key[size // 2 : size // 2 + settings.fast] = -loud * torch.sin(offset * fast)
    for projection, vector in ((attention.q_proj, query), (attention.k_proj, key)):
        projection.weight[head] *= 0.1
        projection.weight[head, 0] = vector


def _carry(attention: LlamaAttention, head: slice, scale: float) -> Tensor:
    """Set values and output to carry some features; returns where they go. (width - 1, size)"""
    width, size = attention.v_proj.weight.shape[1], head.stop - head.start
    read, write = (torch.linalg.qr(torch.randn(width - 1, size))[0] for _ in range(2))
    attention.v_proj.weight[head] = 0
    attention.v_proj.weight[head, 1:] = read.T
    attention.o_proj.weight[:, head] = 0
    attention.o_proj.weight[1:, head] = scale * write
    return write


def _look_for_the_same(
    attention: LlamaAttention, head: slice, carried: Tensor, settings: CircuitSettings
) -> None:
    """Set queries and keys to read what was carried, in features that rotation hardly disturbs."""
    size = head.stop - head.start
    slow = [i for i in range(size) if i % (size // 2) >= settings.slow]
    read = torch.zeros(size, attention.q_proj.weight.shape[1])
    read[slow, 1:] = settings.likeness * carried.T[: len(slow)]
    attention.q_proj.weight[head] = read
    attention.k_proj.weight[head] = read
