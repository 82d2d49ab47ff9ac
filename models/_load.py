"""Loading: a checkpoint becomes a `LoadedModel` that is ready for use."""

import hashlib
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from transformers import PreTrainedModel, PreTrainedTokenizerBase
from transformers.utils import logging as transformers_logging

from c4.errors import ConfigError, ModelError, shortened, unknown_name
from c4.models._architectures import Architecture, architecture_of, brief, named
from c4.models._checkpoint import Checkpoint, weight_files
from c4.models._denoiser import Denoiser
from c4.models._tokens import embedded_tokens, find_ends, find_mask, load_tokenizer
from c4.models._weights import (
    Stored,
    check_tensors,
    read_tensors,
    stored_tensors,
    weights_hash,
)

DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}


@dataclass(frozen=True)
class LoadedModel:
    """A denoiser with its tokenizer, special tokens and origin."""

    checkpoint: Checkpoint
    denoiser: Denoiser
    tokenizer: PreTrainedTokenizerBase
    end_ids: tuple[int, ...]
    """Tokens that end a text or a turn; those of config.json come first."""
    weights_sha256: str
    device: str
    dtype: str

    @property
    def max_length(self) -> int | None:
        """Number of positions that the model was made for, including the prompt."""
        limit = getattr(self.denoiser.model.config, "max_position_embeddings", None)
        return None if limit is None else int(limit)

    @property
    def vocab_size(self) -> int:
        """Tokens that the model can predict; the tokenizer may know fewer."""
        return int(self.denoiser.model.config.vocab_size)

    @property
    def tokenizer_json(self) -> str:
        """The tokenizer in the `tokenizers` library's own format."""
        return str(self.tokenizer.backend_tokenizer.to_str())

    @property
    def tokenizer_sha256(self) -> str:
        template = self.tokenizer.chat_template or ""
        return hashlib.sha256(f"{self.tokenizer_json}\n{template}".encode()).hexdigest()

    def encode_prompt(self, prompt: str) -> list[int]:
        """Token ids of a user's message, through the chat template if the tokenizer has one."""
        if self.tokenizer.chat_template is None:
            return list(self.tokenizer(prompt)["input_ids"])
        chat = [{"role": "user", "content": prompt}]
        try:
            ids = self.tokenizer.apply_chat_template(
                chat, add_generation_prompt=True, tokenize=True, return_dict=False
            )
        except Exception as error:  # a template may fail in any way
            raise ModelError(
                f"{self.checkpoint.folder}: the chat template fails on a prompt ({brief(error)})"
            ) from error
        return list(ids)


def load_model(checkpoint: Checkpoint, *, device: str = "auto", dtype: str = "auto") -> LoadedModel:
    """Load a checkpoint's weights and tokenizer. No code of the checkpoint is run."""
    where, precision = resolve_device(device), resolve_dtype(dtype, resolve_device(device))
    architecture = architecture_of(checkpoint)
    tokenizer = load_tokenizer(checkpoint)
    rows = embedded_tokens(architecture, checkpoint, tokenizer)
    mask_id = find_mask(checkpoint, tokenizer, rows)
    end_ids = find_ends(checkpoint, tokenizer, rows, mask_id)
    files = weight_files(checkpoint)
    model = build_model(architecture, checkpoint, files, where, DTYPES[precision])
    denoiser = Denoiser(model, mask_id=mask_id, shift=architecture.shift)
    return LoadedModel(
        checkpoint=checkpoint,
        denoiser=denoiser,
        tokenizer=tokenizer,
        end_ids=end_ids,
        weights_sha256=weights_hash(files),
        device=where,
        dtype=precision,
    )


def resolve_device(device: str) -> str:
    """The torch device of a name; `auto` is CUDA if it is available, else the CPU."""
    if device == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    try:
        torch.ones(1, device=device).cpu()
    except Exception as error:  # torch has no error of its own for a device that is none
        reason = shortened(" ".join(str(error).split("\n")[:1]))
        raise ConfigError(
            f"device {shortened(device)!r} cannot be used here: {reason}; try --device auto"
        ) from None
    return device


def resolve_dtype(dtype: str, device: str) -> str:
    """The torch dtype of a name; `auto` is bfloat16 on CUDA and float32 elsewhere."""
    if dtype == "auto":
        return "bfloat16" if device.startswith("cuda") else "float32"
    if dtype not in DTYPES:
        raise unknown_name("dtype", dtype, ["auto", *DTYPES])
    return dtype


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
            model, info = _fill(architecture, files, dtype)
        _refuse("lacks", info["missing_keys"])
        _refuse("has a wrong shape for", (name for name, *_ in info["mismatched_keys"]))
    except ModelError as error:
        raise named(checkpoint, error) from error
    except Exception as error:  # transformers may stumble over a configuration anywhere
        raise ModelError(
            f"{checkpoint.folder}: transformers cannot build this model ({brief(error)})"
        ) from error
    module: Any = model  # transformers' stubs take `to` for a function
    loaded: PreTrainedModel = module.to(device).eval()
    return loaded


def _fill(
    architecture: Architecture, files: Sequence[Path], dtype: torch.dtype
) -> tuple[PreTrainedModel, Mapping[str, Any]]:
    """The module, and what transformers says about the tensors it was given."""
    tensors = {
        architecture.rename(name): tensor.to(dtype)  # moved once, when the model is whole
        for name, tensor in read_tensors(files)
    }
    if architecture.native and architecture.config.tie_word_embeddings:
        _tie(tensors)
    load: Any = architecture.model.from_pretrained  # answers two values when asked for both
    model, info = load(
        None,
        config=architecture.config,
        state_dict=tensors,
        dtype=dtype,
        output_loading_info=True,
        ignore_mismatched_sizes=True,  # they are listed, and then refused
    )
    return model, info


HEAD, EMBEDDING = "lm_head.weight", "model.embed_tokens.weight"


def _tie(tensors: dict[str, torch.Tensor]) -> None:
    """Leave out an output layer that is stored beside the embedding it is tied to."""
    head = tensors.pop(HEAD, None)
    if head is not None and not torch.equal(head, tensors[EMBEDDING]):
        raise ModelError(
            "config.json ties the output layer to the embedding, but the weights hold two "
            "different ones"
        )


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
