"""Checksums by which a name vouches for a file of which only a piece is read.

The CRC-32 of a whole follows from those of its pieces, without their bytes. A part's footer holds
the checksum of all that stands before it, which with the footer's own gives the checksum in the
part's name; and that of every column. So a reader of one column needs the footer and that column to
know that both are what was written.
"""

import zlib
from collections.abc import Iterable
from functools import cache

POLYNOMIAL = 0xEDB88320
ONE = 1 << 31
"""The polynomial 1: the highest bit belongs to the lowest power."""


def join_crc32(pieces: Iterable[tuple[int, int]]) -> int:
    """The CRC-32 of pieces one after the other.

    Args:
        pieces: the CRC-32 of each, and how many bytes it has.
    """
    joined = 0
    for checksum, length in pieces:
        joined = _times(_shift(8 * length), joined) ^ checksum
    return joined


def crc32_piece(data: bytes) -> tuple[int, int]:
    """What `join_crc32` needs to know of a piece."""
    return zlib.crc32(data), len(data)


def _times(a: int, b: int) -> int:
    """The product of two polynomials modulo that of CRC-32."""
    product = 0
    while a:
        if a & ONE:
            product ^= b
        a = (a << 1) & 0xFFFFFFFF
        b = (b >> 1) ^ (POLYNOMIAL if b & 1 else 0)
    return product


def _shift(bits: int) -> int:
    """The power of x by which a checksum is multiplied when so many bits follow."""
    power, product = 0, ONE
    while bits:
        if bits & 1:
            product = _times(_doubling(power), product)
        bits >>= 1
        power += 1
    return product


@cache
def _doubling(power: int) -> int:
    """X to the power of 2 to the power."""
    if not power:
        return ONE >> 1
    root = _doubling(power - 1)
    return _times(root, root)
