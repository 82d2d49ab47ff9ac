"""Models: load a denoiser from a name, a folder or a hub id.

`find_checkpoint` reads only the configuration; `load_model` loads weights and tokenizer. LLaDA and
Dream run as transformers' own Llama and Qwen2; code that comes with a checkpoint is never run.
This package knows nothing of tasks, decoding or files other than checkpoints. Modules that need
torch are imported on first use, so names and configurations are resolved at once.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from c4.models._checkpoint import ALIASES, EMBEDDED, Checkpoint, find_checkpoint
from c4.models._reading import Reading

if TYPE_CHECKING:
    from c4.models._architectures import architecture_of, llama_to_llada
    from c4.models._denoiser import Denoiser, KeyValues, read_logits
    from c4.models._devices import resolve_device, resolve_devices, resolve_dtype
    from c4.models._load import LoadedModel, load_model

LOADS_TORCH = {
    "Denoiser": "_denoiser",
    "KeyValues": "_denoiser",
    "read_logits": "_denoiser",
    "LoadedModel": "_load",
    "load_model": "_load",
    "resolve_device": "_devices",
    "resolve_devices": "_devices",
    "resolve_dtype": "_devices",
    "architecture_of": "_architectures",
    "llama_to_llada": "_architectures",
}
"""Names whose definition needs torch, and the modules that define them."""

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
    "resolve_devices",
    "resolve_dtype",
]


def __getattr__(name: str) -> Any:
    if name not in LOADS_TORCH:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{LOADS_TORCH[name]}"), name)
