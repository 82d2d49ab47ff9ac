"""A checkpoint's tokenizer and its special tokens: the mask and the end tokens."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from transformers import (
    AutoTokenizer,
    PreTrainedTokenizerBase,
    PreTrainedTokenizerFast,
    Qwen2Tokenizer,
)

from c4.errors import ModelError
from c4.models._architectures import Architecture, brief, named
from c4.models._checkpoint import Checkpoint
from c4.models._config import read_json, shown
from c4.models._template import turn_ends


def load_tokenizer(checkpoint: Checkpoint) -> PreTrainedTokenizerBase:
    """Load the tokenizer; for LLaDA and Dream its files decide, not the class that they name."""
    folder = checkpoint.folder
    kind: Any = PreTrainedTokenizerFast
    if not checkpoint.native:
        kind = AutoTokenizer
    elif not (folder / "tokenizer.json").exists():
        kind = Qwen2Tokenizer  # Dream names a class of its own that adds nothing to Qwen2's
        if not (folder / "vocab.json").exists() or not (folder / "merges.txt").exists():
            raise ModelError(
                f"{folder}: no usable tokenizer (neither tokenizer.json nor vocab.json with "
                "merges.txt)"
            )
    _check_files(folder)
    try:
        tokenizer: PreTrainedTokenizerBase = kind.from_pretrained(folder, trust_remote_code=False)
    except Exception as error:  # tokenizers raises Exception itself
        raise ModelError(f"{folder}: no usable tokenizer ({brief(error)})") from error
    return tokenizer


LARGEST_FILE = 256 * 2**20
"""Maximum size of a tokenizer file in bytes; published ones have at most 35 MB."""


def _check_files(folder: Path) -> None:
    """Reject pipes, devices and huge files, which a library would read without end."""
    for path in sorted(folder.iterdir()):
        if path.suffix not in (".json", ".txt", ".model", ".jinja"):
            continue
        if not path.is_file():
            raise ModelError(f"{path}: not a file that can be read")
        if path.stat().st_size > LARGEST_FILE:
            raise ModelError(f"{path}: {path.stat().st_size:,} bytes are too many for this file")


def embedded_tokens(
    architecture: Architecture, checkpoint: Checkpoint, tokenizer: PreTrainedTokenizerBase
) -> int:
    """Return the number of embeddings, checked to cover every id of the tokenizer."""
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


def find_mask(checkpoint: Checkpoint, tokenizer: PreTrainedTokenizerBase, rows: int) -> int:
    """Return the id of the mask token that config.json or else the tokenizer names."""
    mask_id = checkpoint.config.get("mask_token_id", tokenizer.mask_token_id)
    if mask_id is None:
        raise ModelError(
            f"{checkpoint.folder}: neither config.json nor the tokenizer names a mask token, "
            "so this is not a masked diffusion model"
        )
    return _token(mask_id, rows, f"{checkpoint.folder / 'config.json'}: mask_token_id")


def find_ends(
    checkpoint: Checkpoint, tokenizer: PreTrainedTokenizerBase, rows: int, mask_id: int
) -> tuple[int, ...]:
    """Return the ids of all tokens that end a text or a turn, without duplicates."""
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
        raise named(checkpoint, error) from error
    if mask_id in ends:
        raise ModelError(f"{folder}: token {mask_id} is named as the mask and as an end of text")
    return tuple(dict.fromkeys(ends))


def _named_ends(config: Mapping[str, Any], path: Path, rows: int) -> list[int]:
    """Return the end tokens that a JSON file names: one, several or none."""
    ends = config.get("eos_token_id", [])
    several = ends if isinstance(ends, list) else [ends]
    return [_token(end, rows, f"{path}: eos_token_id") for end in several]


def _token(value: object, rows: int, what: str) -> int:
    """Return the value, which must be a valid token id of the model."""
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < rows:
        raise ModelError(f"{what} is {shown(value)}, not a token id from 0 to {rows - 1}")
    return value
