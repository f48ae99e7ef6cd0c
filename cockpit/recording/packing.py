"""Compressed bytes with a checksum. What is unpacked may come from anybody, so its size is bounded."""

from __future__ import annotations

import lzma
import zlib
from collections.abc import Iterator
from contextlib import contextmanager

import msgspec
import numpy as np

# What is packed is small numbers side by side, of which no byte tells of its place in a word.
_FILTERS = [{"id": lzma.FILTER_LZMA2, "preset": 6, "dict_size": 1 << 20, "lc": 0, "lp": 0, "pb": 0}]
_CHECK = 4
# Bytes that a blob may unpack to: a page of 50 large hosts has some 10 MiB.
LARGEST = 64 << 20
# Errors by which bytes that no cockpit wrote show up somewhere in reading them.
UNREADABLE = (
    ArithmeticError,
    AttributeError,
    LookupError,
    MemoryError,
    RecursionError,
    TypeError,
    ValueError,
    msgspec.MsgspecError,
    zlib.error,
)


class Damaged(ValueError):
    """Bytes that do not read."""


@contextmanager
def reading(subject: str) -> Iterator[None]:
    """Turn every error by which damaged bytes show up into Damaged, one line that begins with the subject."""
    try:
        with np.errstate(all="ignore"):
            yield
    except UNREADABLE as error:
        said = "out of memory" if isinstance(error, MemoryError) else " ".join(str(error).split())[:120]
        raise Damaged(f"{subject} does not read: {said or type(error).__name__}") from None


def packed(raw: bytes) -> bytes:
    return zlib.crc32(raw).to_bytes(_CHECK, "little") + lzma.compress(raw, lzma.FORMAT_RAW, filters=_FILTERS)


def unpacked(blob: object) -> bytes:
    """The inverse of `packed`. Raises Damaged, also for what a damaged file has in the place of bytes."""
    if not isinstance(blob, bytes):
        raise Damaged("no bytes")
    try:
        unpacker = lzma.LZMADecompressor(lzma.FORMAT_RAW, filters=_FILTERS)
        raw = unpacker.decompress(blob[_CHECK:], LARGEST)
    except (lzma.LZMAError, EOFError) as error:
        raise Damaged(str(error) or "cut short") from None
    except MemoryError:
        raise Damaged("out of memory") from None
    if not unpacker.eof:
        raise Damaged(f"unpacks to more than {LARGEST >> 20} MiB" if len(raw) >= LARGEST else "cut short")
    if zlib.crc32(raw).to_bytes(_CHECK, "little") != blob[:_CHECK]:
        raise Damaged("the check does not hold")
    return raw


def inflated(body: bytes, largest: int) -> bytes:
    """What zlib compressed. Raises zlib.error, also if it is more than `largest` bytes."""
    unpacker = zlib.decompressobj()
    raw = unpacker.decompress(body, largest)
    if not unpacker.eof:
        raise zlib.error("unpacks to too much" if len(raw) >= largest else "cut short")
    return raw
