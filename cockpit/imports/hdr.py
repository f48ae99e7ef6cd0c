"""Decodes compressed histograms of HdrHistogram logs (V0, V1, and V2 as written in Java, C, Go and Python). Pure.

The HdrHistogram library is not used, because it trusts its input: it decompresses without a limit and may read past the
end of the counts.
"""

from __future__ import annotations

import base64
import binascii
import struct
import zlib

import numpy as np

from cockpit.model.histogram import EMPTY, Histogram, indices_of

# Cookies of compressed histograms, each with the cookie of the counts in it.
_V0, _V1, _V2 = 0x1C849309, 0x1C849302, 0x1C849304
_COUNTS = {_V0: 0x1C849308, _V1: 0x1C849301, _V2: 0x1C849303}
_OUTER, _INNER, _INNER_V0 = struct.Struct(">II"), struct.Struct(">IIIIQQd"), struct.Struct(">IIQQQ")
# Bits of a cookie that hold the size of a word: the bytes of a count before V2.
_WORD = 0xF0
_FOREIGN = "not a compressed histogram"
# Maximum size of the decompressed counts (bytes) and maximum bucket index: 5 digits over all of 64 bits have 7 million
# buckets; a histogram of latencies has thousands.
_MOST_BYTES, _MOST_INDEX = 1 << 20, 1 << 23
# Exclusive limits of a value (ns), of the sum of all values (ns), and of a count.
_HIGHEST, SUM, _MOST = 1 << 53, 1 << 60, 1 << 53


def decode(text: str, unit: int, longest: float) -> Histogram:
    """Decode a histogram of values in units of `unit` ns. `longest` (ns) is the maximum stated in the log.

    Raises ValueError.
    """
    digits, lowest, word, body = _decompressed(text)
    indices, counts = _nonzero_words(body, word) if word else _nonzero(body)
    if not indices:
        return EMPTY
    half = max(0, (2 * 10**digits - 1).bit_length() - 1)
    lower, width = _bounds(indices, half, max(1, lowest).bit_length() - 1, unit)
    middles = [low + (wide - unit) // 2 for low, wide in zip(lower, width, strict=True)]
    if middles[-1] >= _HIGHEST or sum(counts) * middles[-1] >= SUM:
        raise ValueError("values of the histogram are too large; choose their unit with --unit ns, us or ms")
    ours, places = np.unique(indices_of(np.array(middles, dtype=np.int64)), return_inverse=True)
    sums = np.zeros(len(ours), dtype=np.int64)
    np.add.at(sums, places, np.array(counts, dtype=np.int64))
    total = sum(middle * count for middle, count in zip(middles, counts, strict=True))
    most = min(max(round(longest), lower[-1]), lower[-1] + width[-1] - 1)
    return Histogram(ours, sums, total, lower[0], most)


def _decompressed(text: str) -> tuple[int, int, int, bytes]:
    """Return the significant digits, the lowest value, the bytes of a count (0: their number varies), and the counts.

    Raises ValueError.
    """
    if not text.isascii():
        raise ValueError(_FOREIGN)
    inflater = zlib.decompressobj()
    try:
        packed = base64.b64decode(text, validate=True)
        outer, length = _OUTER.unpack_from(packed)
        version = outer & ~_WORD
        if version not in _COUNTS or length != len(packed) - _OUTER.size:
            raise ValueError(_FOREIGN)
        plain = inflater.decompress(packed[_OUTER.size :], _MOST_BYTES)
        if version == _V0:
            cookie, digits, lowest, _, _ = _INNER_V0.unpack_from(plain)
            body, offset = plain[_INNER_V0.size :], 0
            length = len(body)
        else:
            cookie, length, offset, digits, lowest, _, _ = _INNER.unpack_from(plain)
            body = plain[_INNER.size :]
    except (binascii.Error, struct.error, zlib.error):
        raise ValueError(_FOREIGN) from None
    word = 0 if version == _V2 else (cookie & _WORD) >> 4 & 0xE
    damaged = cookie & ~_WORD != _COUNTS[version] or length > len(body) or inflater.unconsumed_tail
    if damaged or offset or digits > 5 or lowest >= _HIGHEST or word not in (0, 2, 4, 8):
        raise ValueError("damaged histogram")
    return digits, lowest, word, body[:length]


def _nonzero_words(body: bytes, word: int) -> tuple[list[int], list[int]]:
    """Return the indices and counts of non-empty buckets from counts of `word` bytes each."""
    counts = np.frombuffer(body[: len(body) // word * word], dtype=f">i{word}").astype(np.int64)
    if ((counts < 0) | (counts >= _MOST)).any():
        raise ValueError("damaged histogram")
    indices = np.flatnonzero(counts)
    return indices.tolist(), counts[indices].tolist()


def _nonzero(body: bytes) -> tuple[list[int], list[int]]:
    """Return the indices and counts of non-empty buckets. Numbers are zigzag LEB128 of at most 9 bytes; a negative one
    is the length of a run of empty buckets."""
    indices, counts = [], []
    at = index = 0
    while at < len(body):
        number = shift = 0
        while True:
            byte = body[at] if at < len(body) else -1
            if byte < 0:
                raise ValueError("damaged histogram")
            at += 1
            number |= (byte if shift == 56 else byte & 0x7F) << shift
            if byte < 0x80 or shift == 56:
                break
            shift += 7
        count = (number >> 1) ^ -(number & 1)
        if count > 0:
            indices.append(index)
            counts.append(count)
        index += -count if count < 0 else 1
        if index > _MOST_INDEX or count >= _MOST:
            raise ValueError("damaged histogram")
    return indices, counts


def _bounds(indices: list[int], half: int, magnitude: int, unit: int) -> tuple[list[int], list[int]]:
    """Return the lowest value and the width (ns) of each bucket. `half` is log2 of half the number of sub-buckets."""
    lower, width = [], []
    for index in indices:
        bucket = max(0, (index >> half) - 1)
        lower.append(((index - (bucket << half)) << (bucket + magnitude)) * unit)
        width.append((1 << (bucket + magnitude)) * unit)
    return lower, width
