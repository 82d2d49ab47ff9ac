"""Models: a name, a folder or a hub id becomes a denoiser.

`find_checkpoint` reads only configuration; `load_model` brings weights and tokenizer. LLaDA and
Dream run as transformers' own Llama and Qwen2; code that comes with a checkpoint is never run.
Knows nothing of tasks, decoding or files on disk other than checkpoints. What needs torch is
imported when it is first asked for, so names and configurations are answered at once.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from c4.models._checkpoint import ALIASES, EMBEDDED, Checkpoint, find_checkpoint
from c4.models._reading import Reading

if TYPE_CHECKING:
    from c4.models._architectures import architecture_of, llama_to_llada
    from c4.models._denoiser import Denoiser, KeyValues, read_logits
    from c4.models._load import LoadedModel, load_model, resolve_device, resolve_dtype

LOADS_TORCH = {
    "Denoiser": "_denoiser",
    "KeyValues": "_denoiser",
    "read_logits": "_denoiser",
    "LoadedModel": "_load",
    "load_model": "_load",
    "resolve_device": "_load",
    "resolve_dtype": "_load",
    "architecture_of": "_architectures",
    "llama_to_llada": "_architectures",
}
"""Where the names are that torch is needed for."""

__all__ = [
    "ALIASES",
    "EMBEDDED",
    "Checkpoint",
    "Denoiser",
    "KeyValues",
    "LoadedModel",
    "Reading",
    "architecture_of",
    "find_checkpoint",
    "llama_to_llada",
    "load_model",
    "read_logits",
    "resolve_device",
    "resolve_dtype",
]


def __getattr__(name: str) -> Any:
    if name not in LOADS_TORCH:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{LOADS_TORCH[name]}"), name)
