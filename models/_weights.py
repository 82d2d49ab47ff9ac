"""The weights of a checkpoint: what the files say they hold, and the tensors themselves.

What a file holds is read from its header and compared with the model before any tensor is, so a
checkpoint of many gigabytes that does not fit its configuration is refused at once. Tensors are
read in pieces and never mapped into memory: what stays is the model, and nothing of the file.
"""

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from io import FileIO
from mmap import mmap
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from c4.errors import ModelError

FLOATS = {
    "BF16": torch.bfloat16,
    "F16": torch.float16,
    "F32": torch.float32,
    "F64": torch.float64,
}
"""The types of weights, by their names in a header."""
TYPES = FLOATS | {
    "BOOL": torch.bool,
    "I8": torch.int8,
    "I16": torch.int16,
    "I32": torch.int32,
    "I64": torch.int64,
    "U8": torch.uint8,
}
"""The types that are read; those that are not weights are buffers that transformers may know."""
PIECE = 2**23
"""Bytes that are read at a time: more than that is never in memory twice."""


@dataclass(frozen=True)
class Stored:
    """A tensor as the header of its file describes it."""

    file: Path
    shape: tuple[int, ...]
    dtype: str
    offset: int
    """Where in the file its first byte is."""

    @property
    def size(self) -> int:
        """The number of its elements."""
        return math.prod(self.shape)

    @property
    def bytes(self) -> int:
        """What its elements take in the file."""
        return self.size * TYPES[self.dtype].itemsize


def stored_tensors(files: Sequence[Path]) -> dict[str, Stored]:
    """Every tensor of the files by its name, in the order of the files; no name occurs twice."""
    found: dict[str, Stored] = {}
    for path in files:
        for name, tensor in _header(path).items():
            if name in found:
                raise ModelError(f"{path}: tensor {name} is also in {found[name].file.name}")
            found[name] = tensor
    return found


def _header(path: Path) -> dict[str, Stored]:
    """The tensors of one file in the order of their bytes."""
    from safetensors import SafetensorError, safe_open

    opened: Any = safe_open
    try:
        with opened(path, framework="pt"):
            pass  # this has compared the header with itself and with the size of the file
        with path.open("rb") as file:
            size = int.from_bytes(file.read(8), "little")
            entries: dict[str, Any] = json.loads(file.read(size))
    except (SafetensorError, OSError, ValueError) as error:
        raise ModelError(f"{path}: damaged safetensors file ({error})") from error
    entries.pop("__metadata__", None)
    tensors = {
        name: Stored(
            path, tuple(entry["shape"]), entry["dtype"], 8 + size + entry["data_offsets"][0]
        )
        for name, entry in entries.items()
    }
    return dict(sorted(tensors.items(), key=lambda item: item[1].offset))


def read_tensor(stored: Stored, dtype: torch.dtype, device: str = "cpu") -> Tensor:
    """A tensor in memory of its own, converted and moved piece by piece."""
    tensor = torch.empty(stored.shape, dtype=dtype, device=device)
    flat = tensor.view(-1)
    if tensor.device.type == "cpu" and dtype == TYPES[stored.dtype]:
        with _at(stored) as file:
            _read_fully(file, _room(flat))
    else:
        for place, piece in read_pieces(stored):
            flat[place].copy_(piece)
    return tensor


def read_pieces(stored: Stored) -> Iterator[tuple[slice, Tensor]]:
    """The elements of a tensor, some at a time, and which they are.

    Each piece lies where the one before it was, so it has to be used before the next is asked for.
    """
    most = PIECE // TYPES[stored.dtype].itemsize
    # Pages of its own, which the system gets back: on the heap, every tensor would leave a hole.
    piece = torch.frombuffer(mmap(-1, PIECE), dtype=TYPES[stored.dtype], count=most)  # (N,)
    with _at(stored) as file:
        for start in range(0, stored.size, most):
            some = piece[: stored.size - start]
            _read_fully(file, _room(some))
            yield slice(start, start + len(some)), some


@contextmanager
def _at(stored: Stored) -> Iterator[FileIO]:
    """The file of a tensor, opened where the tensor begins."""
    try:
        with FileIO(stored.file) as file:
            file.seek(stored.offset)
            yield file
    except OSError as error:
        raise ModelError(f"{stored.file}: cannot be read ({error.strerror})") from error


def _room(tensor: Tensor) -> memoryview:
    """The bytes of a tensor, to be written to. tensor: (N,), on the CPU."""
    return tensor.view(torch.uint8).numpy().data


def _read_fully(file: FileIO, room: memoryview) -> None:
    """Fill the room from a file, which may give less at a time than it is asked for."""
    while room:
        count = file.readinto(room)
        if not count:
            raise ModelError(f"{file.name}: the file became shorter while it was read")
        room = room[count:]


def check_tensors(stored: Mapping[str, Stored], wanted: Mapping[str, tuple[int, ...]]) -> None:
    """Refuse a tensor whose shape is not the model's, or whose type is not a known number."""
    for name, tensor in stored.items():
        if name not in wanted:
            continue
        if tensor.shape != wanted[name]:
            raise ModelError(
                f"{tensor.file.name}: the checkpoint has a wrong shape for tensor {name}: "
                f"{list(tensor.shape)}, where config.json asks for {list(wanted[name])}"
            )
        if tensor.dtype not in FLOATS:
            raise ModelError(
                f"{tensor.file.name}: tensor {name} is stored as {tensor.dtype}; known are "
                f"{', '.join(sorted(FLOATS))}, and quantized weights are not read"
            )
