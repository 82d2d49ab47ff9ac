"""How arrays travel: a JSON header, then little-endian buffers that a browser can map as they are.

uint32 length of the header | header, padded with spaces | buffers, each at a multiple of 8.
"""

import json
import struct
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

ALIGNMENT = 8
"""Bytes that a buffer's place is a multiple of: a Float64Array asks for that."""
TYPES = {"i1": "Int8", "u1": "Uint8", "i4": "Int32", "f4": "Float32", "f8": "Float64"}
"""The browser's name for each type of number."""


def pack(header: Mapping[str, Any], arrays: Mapping[str, npt.NDArray[Any]]) -> bytes:
    """A message; `header["arrays"]` tells type, shape and place of every array."""
    places: dict[str, Any] = {}
    buffers: list[bytes] = []
    offset = 0
    for name, array in arrays.items():
        data = _little_endian(array).tobytes()
        kind = TYPES[array.dtype.str[1:]]
        places[name] = {"type": kind, "shape": array.shape, "offset": offset}
        data += bytes(-len(data) % ALIGNMENT)
        buffers.append(data)
        offset += len(data)
    text = json.dumps({**header, "arrays": places}).encode()
    text += b" " * (-(len(text) + 4) % ALIGNMENT)
    return b"".join([struct.pack("<I", len(text)), text, *buffers])


def _little_endian(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    return np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<"))
