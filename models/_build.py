"""Building: files of weights become a module on its device, tensor by tensor.

For LLaDA and Dream no more than one piece of one tensor is in memory beside the model itself.
"""

import logging
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from transformers import PreTrainedModel
from transformers.utils import logging as transformers_logging

from c4.errors import ModelError
from c4.models._architectures import Architecture, brief, named
from c4.models._checkpoint import Checkpoint
from c4.models._memory import available_memory
from c4.models._waiting import Patience
from c4.models._weights import (
    FLOATS,
    TYPES,
    Stored,
    check_tensors,
    read_pieces,
    read_tensor,
    stored_tensors,
)

log = logging.getLogger(__name__)


def build_model(
    architecture: Architecture,
    checkpoint: Checkpoint,
    files: Sequence[Path],
    device: str,
    dtype: torch.dtype,
) -> PreTrainedModel:
    """The module with the checkpoint's weights."""
    architecture.config.is_causal = False
    try:
        stored = {architecture.rename(name): t for name, t in stored_tensors(files).items()}
        with _quiet_transformers():
            _check_fit(architecture, stored)
            if torch.device(device).type == "cpu" or not architecture.native:
                _check_memory(architecture, stored, dtype)
            model = _fill(architecture, stored, device, dtype)
    except ModelError as error:
        raise named(checkpoint, error) from error
    except torch.OutOfMemoryError as error:
        raise ModelError(
            f"{checkpoint.folder}: {device} has too little free memory for the weights, which "
            f"need {_gigabytes(_bytes(architecture, stored, dtype))}"
        ) from error
    except Exception as error:  # transformers may stumble over a configuration anywhere
        raise ModelError(
            f"{checkpoint.folder}: transformers cannot build this model ({brief(error)})"
        ) from error
    return model


HEAD, EMBEDDING = "lm_head.weight", "model.embed_tokens.weight"


def _fill(
    architecture: Architecture, stored: Mapping[str, Stored], device: str, dtype: torch.dtype
) -> PreTrainedModel:
    """The module on its device, ready to be asked."""
    model: Any  # transformers' stubs take `to` for a function
    if architecture.native:
        model = _fill_native(architecture, stored, device, dtype)
    else:
        model = _fill_any(architecture, stored, dtype)
    filled: PreTrainedModel = model.to(device).eval().requires_grad_(False)
    return filled


def _fill_native(
    architecture: Architecture, stored: Mapping[str, Stored], device: str, dtype: torch.dtype
) -> PreTrainedModel:
    """A module that transformers makes around tensors of one number, each then replaced."""
    kept = _kept(architecture, stored)
    empty = {name: torch.empty((), dtype=dtype).expand(t.shape) for name, t in kept.items()}
    model = _from_tensors(architecture, empty, dtype)
    for name, tensor in _patiently(kept):
        # The parameter stays the same object, so whatever is tied to it follows.
        model.get_parameter(name).data = read_tensor(tensor, dtype, device)
    if HEAD in stored.keys() - kept.keys():
        _check_tied(stored[HEAD], model.get_parameter(EMBEDDING))
    return model


def _fill_any(
    architecture: Architecture, stored: Mapping[str, Stored], dtype: torch.dtype
) -> PreTrainedModel:
    """A module of any class; transformers may rename its tensors, so it is handed all of them."""
    known = {name: tensor for name, tensor in stored.items() if tensor.dtype in TYPES}
    tensors = {
        name: read_tensor(t, dtype if t.dtype in FLOATS else TYPES[t.dtype])
        for name, t in _patiently(known)
    }
    return _from_tensors(architecture, tensors, dtype)


def _kept(architecture: Architecture, stored: Mapping[str, Stored]) -> dict[str, Stored]:
    """What the model keeps: no output layer that is stored beside the embedding it is tied to."""
    tied = architecture.native and architecture.config.tie_word_embeddings
    return {name: tensor for name, tensor in stored.items() if not (tied and name == HEAD)}


def _from_tensors(
    architecture: Architecture, tensors: Mapping[str, Tensor], dtype: torch.dtype
) -> PreTrainedModel:
    """The module around tensors; transformers copies none that has the right type already."""
    load: Any = architecture.model.from_pretrained  # answers two values when asked for both
    model, info = load(
        None,
        config=architecture.config,
        state_dict=tensors,
        dtype=dtype,
        output_loading_info=True,
        ignore_mismatched_sizes=True,  # they are listed, and then refused
    )
    _refuse("lacks", info["missing_keys"])
    _refuse("has a wrong shape for", (name for name, *_ in info["mismatched_keys"]))
    return model


def _patiently(stored: Mapping[str, Stored]) -> Iterator[tuple[str, Stored]]:
    """Every tensor, with a word now and then to a user who has to wait for them."""
    total = sum(tensor.bytes for tensor in stored.values())
    patience = Patience(log, "loading weights", total)
    for name, tensor in stored.items():
        yield name, tensor
        patience.advance(tensor.bytes)


def _check_tied(head: Stored, embedding: Tensor) -> None:
    """Refuse an output layer that is said to be tied and is stored with other values."""
    flat = embedding.view(-1)
    for place, piece in read_pieces(head):
        if not torch.equal(piece.to(flat), flat[place]):
            raise ModelError(
                "config.json ties the output layer to the embedding, but the weights hold two "
                "different ones"
            )


def _check_memory(
    architecture: Architecture, stored: Mapping[str, Stored], dtype: torch.dtype
) -> None:
    """Refuse weights that do not fit into memory, before any is read."""
    need, free = _bytes(architecture, stored, dtype), available_memory()
    if free is None or need <= free:
        return
    half = _bytes(architecture, stored, torch.bfloat16)
    advice = "use a smaller model or a machine with more memory"
    if half < need:
        advice = f"--dtype bfloat16 needs {_gigabytes(half)}"
        advice = advice if half <= free else f"even {advice}"
    raise ModelError(
        f"the weights need {_gigabytes(need)} of memory as {str(dtype).removeprefix('torch.')}, "
        f"and {_gigabytes(free)} are available; {advice}"
    )


def _bytes(architecture: Architecture, stored: Mapping[str, Stored], dtype: torch.dtype) -> int:
    """What the weights take in memory."""
    return sum(tensor.size for tensor in _kept(architecture, stored).values()) * dtype.itemsize


def _gigabytes(count: int) -> str:
    return f"{count / 1e9:.1f} GB"


def _check_fit(architecture: Architecture, stored: Mapping[str, Stored]) -> None:
    """Compare the files' headers with the model that config.json asks for; no tensor is read."""
    layers = getattr(architecture.config, "num_hidden_layers", 0)
    if layers > len(stored):  # before thousands of layers are made for nothing
        raise ModelError(
            f"config.json asks for {layers} layers, but the weights hold {len(stored)} tensors"
        )
    with torch.device("meta"):
        empty: Any = architecture.model(architecture.config)
    wanted = {name: tuple(tensor.shape) for name, tensor in empty.state_dict().items()}
    if architecture.native:
        tied = {HEAD} if architecture.config.tie_word_embeddings else set()
        _refuse("lacks", wanted.keys() - stored.keys() - tied)
        _refuse("has an unknown", stored.keys() - wanted.keys())
    check_tensors(stored, wanted)
    asked = sum(math.prod(shape) for shape in wanted.values())
    held = sum(math.prod(tensor.shape) for tensor in stored.values())
    if asked > 3 * held:  # twice may be right where an embedding is tied
        raise ModelError(
            f"config.json asks for {asked:,} parameters, but the weights hold {held:,}"
        )


def _refuse(what: str, names: Iterable[str]) -> None:
    """Raise an error about the first of the tensors, if there are any."""
    first = min(names, default=None)
    if first is not None:
        raise ModelError(f"the checkpoint {what} tensor {first}")


@contextmanager
def _quiet_transformers() -> Iterator[None]:
    """Without its progress bar and its report, which `build_model` turns into errors."""
    verbosity = transformers_logging.get_verbosity()
    bars = transformers_logging.is_progress_bar_enabled()
    transformers_logging.set_verbosity_error()
    transformers_logging.disable_progress_bar()
    try:
        yield
    finally:
        transformers_logging.set_verbosity(verbosity)
        if bars:
            transformers_logging.enable_progress_bar()
