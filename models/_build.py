"""Building: load weight files into a module on its device, tensor by tensor.

For LLaDA and Dream, at most one tensor is in memory in addition to the model itself.
"""

import logging
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
from c4.models._load_progress import Progress
from c4.models._memory import available_memory
from c4.models._weights import FLOATS, INTEGERS, StoredTensor, read_tensor, stored_tensors

log = logging.getLogger(__name__)

HEAD, EMBEDDING = "lm_head.weight", "model.embed_tokens.weight"


def build_model(
    architecture: Architecture,
    checkpoint: Checkpoint,
    files: Sequence[Path],
    device: str,
    dtype: torch.dtype,
) -> PreTrainedModel:
    """Build the module with the checkpoint's weights, on its device and ready for inference."""
    architecture.config.is_causal = False
    try:
        stored = {architecture.rename(name): t for name, t in stored_tensors(files).items()}
        with _quiet_transformers():
            tied = checkpoint.native and architecture.config.tie_word_embeddings
            _check_fit(architecture, stored, native=checkpoint.native)
            head = stored.pop(HEAD, None) if tied else None
            if torch.device(device).type == "cpu" or not checkpoint.native:
                _check_memory(stored, dtype)
            fill = _fill_native if checkpoint.native else _fill_any
            model: Any = fill(architecture, stored, device, dtype)
            if head and not torch.equal(
                read_tensor(head, dtype, device), model.get_parameter(EMBEDDING)
            ):
                raise ModelError(
                    "config.json ties the output layer to the embedding, but the weights hold two "
                    "different ones"
                )
            built: PreTrainedModel = model.to(device).eval().requires_grad_(False)
    except ModelError as error:
        raise named(checkpoint, error) from error
    except torch.OutOfMemoryError as error:
        raise ModelError(
            f"{checkpoint.folder}: {device} has too little free memory for the weights, which "
            f"need {_gigabytes(_bytes(stored, dtype))}"
        ) from error
    except Exception as error:  # transformers may fail on a configuration anywhere
        raise ModelError(
            f"{checkpoint.folder}: transformers cannot build this model ({brief(error)})"
        ) from error
    return built


def _fill_native(
    architecture: Architecture, stored: Mapping[str, StoredTensor], device: str, dtype: torch.dtype
) -> PreTrainedModel:
    """Build the module around placeholders, then replace each one by its tensor."""
    empty = {name: torch.empty((), dtype=dtype).expand(t.shape) for name, t in stored.items()}
    model = _from_tensors(architecture, empty, dtype)
    for name, tensor in _with_progress(stored):
        # The parameter object stays the same, so parameters tied to it are updated too.
        model.get_parameter(name).data = read_tensor(tensor, dtype, device)
    return model


def _fill_any(
    architecture: Architecture,
    stored: Mapping[str, StoredTensor],
    device: str,  # noqa: ARG001 - the caller moves the module
    dtype: torch.dtype,
) -> PreTrainedModel:
    """Build a module of any class from all tensors at once, as transformers may rename them."""
    tensors = {
        name: read_tensor(tensor, dtype if tensor.dtype in FLOATS else None)
        for name, tensor in _with_progress(stored)
        if tensor.dtype in (*FLOATS, *INTEGERS)
    }
    return _from_tensors(architecture, tensors, dtype)


def _from_tensors(
    architecture: Architecture, tensors: Mapping[str, Tensor], dtype: torch.dtype
) -> PreTrainedModel:
    """Build the module around tensors; those that have the right type are not copied."""
    load: Any = architecture.model.from_pretrained  # returns two values with output_loading_info
    model, info = load(
        None,
        config=architecture.config,
        state_dict=tensors,
        dtype=dtype,
        output_loading_info=True,
        ignore_mismatched_sizes=True,  # they are listed, and then raise an error
    )
    _refuse("lacks", info["missing_keys"])
    _refuse("has a wrong shape for", (name for name, *_ in info["mismatched_keys"]))
    return model


def _with_progress(stored: Mapping[str, StoredTensor]) -> Iterator[tuple[str, StoredTensor]]:
    """Yield all tensors by name and log the progress, counted in bytes of 16-bit weights."""
    progress = Progress(log, "loading weights", _bytes(stored, torch.bfloat16))
    for name, tensor in stored.items():
        yield name, tensor
        progress.advance(_bytes({name: tensor}, torch.bfloat16))


def _check_memory(stored: Mapping[str, StoredTensor], dtype: torch.dtype) -> None:
    """Raise `ModelError` before reading weights that do not fit in memory."""
    need, free = _bytes(stored, dtype), available_memory()
    if free is None or need <= free:
        return
    half = _bytes(stored, torch.bfloat16)
    advice = "use a smaller model or a machine with more memory"
    if half < need:
        advice = f"--dtype bfloat16 needs {_gigabytes(half)}"
        advice = advice if half <= free else f"even {advice}"
    raise ModelError(
        f"the weights need {_gigabytes(need)} of memory as {str(dtype).removeprefix('torch.')}, "
        f"and {_gigabytes(free)} are available; {advice}"
    )


def _bytes(stored: Mapping[str, StoredTensor], dtype: torch.dtype) -> int:
    """Size of tensors in a number format, in bytes."""
    return sum(tensor.size for tensor in stored.values()) * dtype.itemsize


def _gigabytes(count: int) -> str:
    return f"{count / 1e9:.1f} GB"


def _check_fit(
    architecture: Architecture, stored: Mapping[str, StoredTensor], *, native: bool
) -> None:
    """Check the files' headers against the model in config.json, without reading tensors."""
    layers = getattr(architecture.config, "num_hidden_layers", 0)
    if layers > len(stored):  # checked before building thousands of layers
        raise ModelError(
            f"config.json asks for {layers} layers, but the weights hold {len(stored)} tensors"
        )
    with torch.device("meta"):
        empty: Any = architecture.model(architecture.config)
    wanted = {name: tensor.shape for name, tensor in empty.state_dict().items()}
    if native:
        tied = {HEAD} if architecture.config.tie_word_embeddings else set()
        _refuse("lacks", wanted.keys() - stored.keys() - tied)
        _refuse("has an unknown", stored.keys() - wanted.keys())
    for name, tensor in stored.items():
        if name in wanted and tensor.shape != tuple(wanted[name]):
            raise ModelError(
                f"{tensor.file.name}: the checkpoint has a wrong shape for tensor {name}: "
                f"{list(tensor.shape)}, where config.json asks for {list(wanted[name])}"
            )
        if name in wanted and tensor.dtype not in FLOATS:
            raise ModelError(
                f"{tensor.file.name}: tensor {name} is stored as {tensor.dtype}; the known types "
                f"are {', '.join(sorted(FLOATS))}, and quantized weights are not read"
            )
    asked = sum(shape.numel() for shape in wanted.values())
    held = sum(tensor.size for tensor in stored.values())
    if asked > 3 * held:  # up to twice is possible with a tied embedding
        raise ModelError(
            f"config.json asks for {asked:,} parameters, but the weights hold {held:,}"
        )


def _refuse(what: str, names: Iterable[str]) -> None:
    """Raise `ModelError` about the first of the tensors, if there are any."""
    first = min(names, default=None)
    if first is not None:
        raise ModelError(f"the checkpoint {what} tensor {first}")


@contextmanager
def _quiet_transformers() -> Iterator[None]:
    """Silence transformers' progress bar and loading report; `build_model` raises errors."""
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
