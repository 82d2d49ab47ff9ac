"""Loading: a checkpoint becomes a `LoadedModel`, ready to be asked."""

import hashlib
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
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
from c4.models._architectures import NATIVE, Architecture, architecture_of, brief
from c4.models._checkpoint import Checkpoint, weight_files
from c4.models._config import read_json, shown
from c4.models._denoiser import Denoiser
from c4.models._template import turn_ends
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
    """A denoiser with everything that must be known to use and to name it."""

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
    """Load a checkpoint's weights and tokenizer. No code of the checkpoint's is run."""
    where, precision = resolve_device(device), resolve_dtype(dtype, resolve_device(device))
    architecture = architecture_of(checkpoint)
    tokenizer = load_tokenizer(checkpoint)
    rows = _embedded_tokens(architecture, checkpoint, tokenizer)
    mask_id = _mask_id(checkpoint, tokenizer, rows)
    end_ids = _end_ids(checkpoint, tokenizer, rows, mask_id)
    files = weight_files(checkpoint)
    model = _build(architecture, checkpoint, files, where, DTYPES[precision])
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
        if not (folder / "vocab.json").exists() or not (folder / "merges.txt").exists():
            raise ModelError(
                f"{folder}: no usable tokenizer (neither tokenizer.json nor vocab.json with "
                "merges.txt)"
            )
    try:
        tokenizer: PreTrainedTokenizerBase = kind.from_pretrained(folder, trust_remote_code=False)
    except Exception as error:  # tokenizers raises Exception itself
        raise ModelError(f"{folder}: no usable tokenizer ({brief(error)})") from error
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
    stored = {architecture.rename(name): t for name, t in stored_tensors(files).items()}
    try:
        with _quiet_transformers():
            _check_fit(architecture, checkpoint, stored)
            model, info = _fill(architecture, files, dtype)
    except ModelError:
        raise
    except Exception as error:  # transformers may stumble over a configuration anywhere
        raise ModelError(
            f"{checkpoint.folder}: transformers cannot build this model ({brief(error)})"
        ) from error
    _refuse("lacks", info["missing_keys"], checkpoint)
    _refuse("has a wrong shape for", (name for name, *_ in info["mismatched_keys"]), checkpoint)
    loaded: PreTrainedModel = model.to(device).eval()
    return loaded


def _fill(
    architecture: Architecture, files: Sequence[Path], dtype: torch.dtype
) -> tuple[PreTrainedModel, Mapping[str, Any]]:
    """The module, and what transformers says about the tensors it was given."""
    tensors = {
        architecture.rename(name): tensor.to(dtype)  # moved once, when the model is whole
        for name, tensor in read_tensors(files)
    }
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


def _check_fit(
    architecture: Architecture, checkpoint: Checkpoint, stored: Mapping[str, Stored]
) -> None:
    """Compare the files' headers with the model that config.json asks for; no tensor is read."""
    with torch.device("meta"):
        empty: Any = architecture.model(architecture.config)
    wanted = {name: tuple(tensor.shape) for name, tensor in empty.state_dict().items()}
    if architecture.native:
        tied = {"lm_head.weight"} if architecture.config.tie_word_embeddings else set()
        _refuse("lacks", wanted.keys() - stored.keys() - tied, checkpoint)
        _refuse("has an unknown", stored.keys() - wanted.keys(), checkpoint)
    check_tensors(stored, wanted)
    asked = sum(math.prod(shape) for shape in wanted.values())
    held = sum(math.prod(tensor.shape) for tensor in stored.values())
    if asked > 3 * held:  # twice may be right where an embedding is tied
        raise ModelError(
            f"{checkpoint.folder}: config.json asks for {asked:,} parameters, but the weights hold "
            f"{held:,}"
        )


def _refuse(what: str, names: Iterable[str], checkpoint: Checkpoint) -> None:
    """Raise an error about the first of the tensors, if there are any."""
    first = min(names, default=None)
    if first is not None:
        raise ModelError(f"{checkpoint.folder}: the checkpoint {what} tensor {first}")


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


def _embedded_tokens(
    architecture: Architecture, checkpoint: Checkpoint, tokenizer: PreTrainedTokenizerBase
) -> int:
    """Number of token ids that the model knows, which the tokenizer must not exceed."""
    rows = getattr(architecture.config, "vocab_size", None)
    if not isinstance(rows, int):
        raise ModelError(f"{checkpoint.folder}: config.json lacks vocab_size")
    text, last = max(tokenizer.get_vocab().items(), key=lambda item: item[1], default=("", -1))
    if not 0 <= last < rows:
        raise ModelError(
            f"{checkpoint.folder}: the tokenizer's last token is {text!r} with id {last}, but the "
            f"model has {rows} embeddings; tokenizer and weights do not belong together"
        )
    return rows


def _mask_id(checkpoint: Checkpoint, tokenizer: PreTrainedTokenizerBase, rows: int) -> int:
    config = checkpoint.config
    mask_id = config.get("mask_token_id", tokenizer.mask_token_id)
    if mask_id is None:
        raise ModelError(
            f"{checkpoint.folder}: neither config.json nor the tokenizer names a mask token, "
            "so this is not a masked diffusion model"
        )
    return _token(mask_id, rows, f"{checkpoint.folder / 'config.json'}: mask_token_id")


def _end_ids(
    checkpoint: Checkpoint, tokenizer: PreTrainedTokenizerBase, rows: int, mask_id: int
) -> tuple[int, ...]:
    """All tokens that end a text or a turn, each once."""
    folder = checkpoint.folder
    ends = _named_ends(checkpoint.config, folder / "config.json", rows)
    generation = folder / "generation_config.json"
    if generation.exists():
        ends += _named_ends(read_json(generation), generation, rows)
    if tokenizer.eos_token_id is not None:
        ends.append(tokenizer.eos_token_id)
    try:
        ends += turn_ends(tokenizer)
    except ModelError as error:
        raise ModelError(f"{folder}: {error}") from error
    if mask_id in ends:
        raise ModelError(f"{folder}: token {mask_id} is named as the mask and as an end of text")
    return tuple(dict.fromkeys(ends))


def _named_ends(config: Mapping[str, Any], path: Path, rows: int) -> list[int]:
    """The end tokens that a JSON file names: one, several or none."""
    ends = config.get("eos_token_id", [])
    several = ends if isinstance(ends, list) else [ends]
    return [_token(end, rows, f"{path}: eos_token_id") for end in several]


def _token(value: object, rows: int, what: str) -> int:
    """A token id that the model knows."""
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < rows:
        raise ModelError(f"{what} is {shown(value)}, not a token id from 0 to {rows - 1}")
    return value
