"""Loading: a checkpoint becomes a `LoadedModel`, ready to be asked."""

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from transformers import (
    AutoTokenizer,
    PreTrainedModel,
    PreTrainedTokenizerBase,
    PreTrainedTokenizerFast,
    Qwen2Tokenizer,
)
from transformers.utils import logging as transformers_logging

from c4.errors import ConfigError, ModelError, unknown_name
from c4.models._architectures import NATIVE, Architecture, architecture_of
from c4.models._checkpoint import (
    Checkpoint,
    read_tensors,
    weight_files,
    weights_hash,
)
from c4.models._denoiser import Denoiser

DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}


@dataclass(frozen=True)
class LoadedModel:
    """A denoiser with everything that must be known to use and to name it."""

    checkpoint: Checkpoint
    denoiser: Denoiser
    tokenizer: PreTrainedTokenizerBase
    end_ids: tuple[int, ...]
    """Tokens that end a text; usually one."""
    weights_sha256: str
    device: str
    dtype: str

    @property
    def max_length(self) -> int | None:
        """Positions the model was made for, prompt included."""
        limit = getattr(self.denoiser.model.config, "max_position_embeddings", None)
        return None if limit is None else int(limit)

    @property
    def tokenizer_json(self) -> str:
        """The tokenizer in the `tokenizers` library's own format."""
        return str(self.tokenizer.backend_tokenizer.to_str())

    @property
    def tokenizer_sha256(self) -> str:
        template = self.tokenizer.chat_template or ""
        return hashlib.sha256(f"{self.tokenizer_json}\n{template}".encode()).hexdigest()

    def encode_prompt(self, prompt: str) -> list[int]:
        """A user's message through the chat template; bare where the tokenizer has none."""
        if self.tokenizer.chat_template is None:
            return list(self.tokenizer(prompt)["input_ids"])
        chat = [{"role": "user", "content": prompt}]
        return list(
            self.tokenizer.apply_chat_template(
                chat, add_generation_prompt=True, tokenize=True, return_dict=False
            )
        )


def load_model(checkpoint: Checkpoint, *, device: str = "auto", dtype: str = "auto") -> LoadedModel:
    """Load a checkpoint's weights and tokenizer. No code of the checkpoint's is run."""
    where, precision = resolve_device(device), resolve_dtype(dtype, resolve_device(device))
    architecture = architecture_of(checkpoint)
    tokenizer = load_tokenizer(checkpoint)
    files = weight_files(checkpoint)
    model = _build(architecture, checkpoint, files, where, DTYPES[precision])
    denoiser = Denoiser(model, mask_id=_mask_id(checkpoint, tokenizer), shift=architecture.shift)
    return LoadedModel(
        checkpoint=checkpoint,
        denoiser=denoiser,
        tokenizer=tokenizer,
        end_ids=_end_ids(checkpoint, tokenizer),
        weights_sha256=weights_hash(files),
        device=where,
        dtype=precision,
    )


def resolve_device(device: str) -> str:
    """`auto` is CUDA where there is one, else the CPU."""
    if device == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    try:
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:
        reason = str(error).splitlines()[0]
        raise ConfigError(f"device {device!r} cannot be used here: {reason}") from None
    return device


def resolve_dtype(dtype: str, device: str) -> str:
    """`auto` is bfloat16 on CUDA and float32 elsewhere."""
    if dtype == "auto":
        return "bfloat16" if device.startswith("cuda") else "float32"
    if dtype not in DTYPES:
        raise unknown_name("dtype", dtype, ["auto", *DTYPES])
    return dtype


def load_tokenizer(checkpoint: Checkpoint) -> PreTrainedTokenizerBase:
    """The checkpoint's tokenizer, by its files rather than by the class they name."""
    folder = checkpoint.folder
    kind: Any = PreTrainedTokenizerFast
    if checkpoint.model_type not in NATIVE:
        kind = AutoTokenizer
    elif not (folder / "tokenizer.json").exists():
        kind = Qwen2Tokenizer  # Dream names a class of its own that adds nothing to Qwen2's
    try:
        tokenizer: PreTrainedTokenizerBase = kind.from_pretrained(folder, trust_remote_code=False)
    except (OSError, ValueError, TypeError) as error:
        raise ModelError(f"{folder}: no usable tokenizer ({error})") from error
    return tokenizer


def _build(
    architecture: Architecture,
    checkpoint: Checkpoint,
    files: Sequence[Path],
    device: str,
    dtype: torch.dtype,
) -> PreTrainedModel:
    """The module with the checkpoint's weights."""
    architecture.config.is_causal = False
    tensors = {
        architecture.rename(name): tensor.to(dtype)  # moved once, when the model is whole
        for name, tensor in read_tensors(files)
    }
    load: Any = architecture.model.from_pretrained  # answers two values when asked for both
    with _quiet_transformers():
        model, info = load(
            None,
            config=architecture.config,
            state_dict=tensors,
            dtype=dtype,
            output_loading_info=True,
        )
    problems = {
        "lacks": info["missing_keys"],
        "has an unknown": info["unexpected_keys"] if checkpoint.model_type in NATIVE else (),
        "has a wrong shape for": info["mismatched_keys"],
    }
    for what, names in problems.items():
        if names:
            raise ModelError(f"{checkpoint.folder}: the checkpoint {what} tensor {min(names)}")
    loaded: PreTrainedModel = model.to(device).eval()
    return loaded


@contextmanager
def _quiet_transformers() -> Iterator[None]:
    """Without its progress bar and its report, which `_build` turns into errors."""
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


def _mask_id(checkpoint: Checkpoint, tokenizer: PreTrainedTokenizerBase) -> int:
    mask_id = checkpoint.config.get("mask_token_id", tokenizer.mask_token_id)
    if mask_id is None:
        raise ModelError(
            f"{checkpoint.folder}: neither config.json nor the tokenizer names a mask token, "
            "so this is not a masked diffusion model"
        )
    return int(mask_id)


def _end_ids(checkpoint: Checkpoint, tokenizer: PreTrainedTokenizerBase) -> tuple[int, ...]:
    end = checkpoint.config.get("eos_token_id", tokenizer.eos_token_id)
    if end is None:
        return ()
    return tuple(end) if isinstance(end, list) else (int(end),)
