"""Bytes made small, with a check that they came back as they were."""

from __future__ import annotations

import lzma
import zlib

# What is packed is small numbers side by side, of which no byte tells of its place in a word.
_FILTERS = [{"id": lzma.FILTER_LZMA2, "preset": 6, "dict_size": 1 << 20, "lc": 0, "lp": 0, "pb": 0}]
_CHECK = 4


class Damaged(ValueError):
    """Bytes that do not read."""


def packed(raw: bytes) -> bytes:
    return zlib.crc32(raw).to_bytes(_CHECK, "little") + lzma.compress(raw, lzma.FORMAT_RAW, filters=_FILTERS)


def unpacked(blob: object) -> bytes:
    """The inverse of `packed`. Raises Damaged, also for what a damaged file has in the place of bytes."""
    if not isinstance(blob, bytes):
        raise Damaged("no bytes")
    try:
        raw = lzma.decompress(blob[_CHECK:], lzma.FORMAT_RAW, filters=_FILTERS)
    except (lzma.LZMAError, EOFError) as error:
        raise Damaged(str(error) or "cut short") from None
    if zlib.crc32(raw).to_bytes(_CHECK, "little") != blob[:_CHECK]:
        raise Damaged("the check does not hold")
    return raw
