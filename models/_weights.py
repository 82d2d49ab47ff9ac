"""Tensors in safetensors files: their headers and their values.

The headers suffice to compare a checkpoint with its configuration, so a mismatch is reported before
any of its gigabytes are read.
"""

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from c4.errors import ModelError

FLOATS = {
    "BF16": torch.bfloat16,
    "F16": torch.float16,
    "F32": torch.float32,
    "F64": torch.float64,
}
"""Types of weights by their names in a header."""
INTEGERS = ("BOOL", "I8", "I16", "I32", "I64", "U8")
"""Types of buffers that a transformers model may have."""


@dataclass(frozen=True)
class StoredTensor:
    """A tensor as the header of its file describes it."""

    file: Path
    name: str
    shape: tuple[int, ...]
    dtype: str

    @property
    def size(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)


def stored_tensors(files: Sequence[Path]) -> dict[str, StoredTensor]:
    """Return every tensor of the files by name, in file order; names must be unique."""
    found: dict[str, StoredTensor] = {}
    for path in files:
        with _opened(path) as file:
            for name in file.offset_keys():
                if name in found:
                    raise ModelError(f"{path}: tensor {name} is also in {found[name].file.name}")
                entry = file.get_slice(name)
                shape = tuple(entry.get_shape())
                found[name] = StoredTensor(path, name, shape, entry.get_dtype())
    return found


def read_tensor(stored: StoredTensor, dtype: torch.dtype | None, device: str = "cpu") -> Tensor:
    """Copy a tensor to a device, converted to `dtype` unless that is None."""
    # The file is opened for each tensor because everything read from it stays mapped until it is
    # closed.
    with _opened(stored.file) as file:
        tensor: Tensor = file.get_tensor(stored.name)
        return tensor.to(device, dtype or tensor.dtype, copy=True)


@contextmanager
def _opened(path: Path) -> Iterator[Any]:
    """Open a safetensors file; `safe_open` checks its header for consistency and file size."""
    opened: Any = safe_open
    try:
        with opened(path, framework="pt") as file:
            yield file
    except (SafetensorError, OSError) as error:
        raise ModelError(f"{path}: damaged safetensors file ({error})") from error
