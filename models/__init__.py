"""Models: a name, a folder or a hub id becomes a denoiser.

`find_checkpoint` reads only configuration; `load_model` brings weights and tokenizer. LLaDA and
Dream run as transformers' own Llama and Qwen2; code that comes with a checkpoint is never run.
Knows nothing of tasks, decoding or files on disk other than checkpoints.
"""

from c4.models._checkpoint import ALIASES, EMBEDDED, Checkpoint, find_checkpoint
from c4.models._denoiser import (
    BoolArray,
    Denoiser,
    FloatArray,
    IntArray,
    Memory,
    Reading,
    read_logits,
)
from c4.models._load import LoadedModel, load_model, resolve_device, resolve_dtype

__all__ = [
    "ALIASES",
    "EMBEDDED",
    "BoolArray",
    "Checkpoint",
    "Denoiser",
    "FloatArray",
    "IntArray",
    "LoadedModel",
    "Memory",
    "Reading",
    "find_checkpoint",
    "load_model",
    "read_logits",
    "resolve_device",
    "resolve_dtype",
]
