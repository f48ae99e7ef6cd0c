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
import numpy.typing as npt

from cockpit.model.histogram import EMPTY, Histogram, indices_of

# Cookies of compressed histograms, each with the cookie of the counts in it.
_V0, _V1, _V2 = 0x1C849309, 0x1C849302, 0x1C849304
_COUNTS = {_V0: 0x1C849308, _V1: 0x1C849301, _V2: 0x1C849303}
_OUTER, _INNER, _INNER_V0 = struct.Struct(">II"), struct.Struct(">IIIIQQd"), struct.Struct(">IIQQQ")
# Bits of a cookie that hold the size of a word: the bytes of a count before V2.
_WORD = 0xF0
_FOREIGN = "not a compressed histogram"
# Maximum size of the decompressed counts (bytes), in total and per compressed byte, and maximum bucket index: 5 digits
# over all of 64 bits have 7 million buckets; a histogram of latencies has thousands.
_MOST_BYTES, _MOST_RATIO, _MOST_INDEX = 1 << 20, 20, 1 << 23
_SMALL = 1 << 12
# Bits of a byte of a number, and maximum bytes of a number: _MOST in zigzag has 55 bits.
_BITS, _MOST_LENGTH = 7, 8
# Exclusive limits of a value (ns), of the sum of all values (ns), and of a count.
_HIGHEST, SUM, _MOST = 1 << 53, 1 << 60, 1 << 53

_TOO_LARGE = "values of the histogram are too large; choose their unit with --unit ns, us or ms"
Numbers = npt.NDArray[np.int64]


def decode(text: str, unit: int, longest: float) -> Histogram:
    """Decode a histogram of values in units of `unit` ns. `longest` (ns) is the maximum stated in the log.

    Raises ValueError.
    """
    digits, lowest, word, body = _decompressed(text)
    indices, counts = _nonzero_words(body, word) if word else _nonzero(body)
    if not len(indices):
        return EMPTY
    half = max(0, (2 * 10**digits - 1).bit_length() - 1)
    lower, width = _bounds(indices, half, max(1, lowest).bit_length() - 1, unit)
    middles = lower + (width - unit) // 2
    if float(counts.sum(dtype=np.float64)) * float(middles[-1]) >= SUM:
        raise ValueError(_TOO_LARGE)
    ours, places = np.unique(indices_of(middles), return_inverse=True)
    sums = np.zeros(len(ours), dtype=np.int64)
    np.add.at(sums, places, counts)
    last = int(lower[-1])
    most = min(max(round(longest), last), last + int(width[-1]) - 1)
    return Histogram(ours, sums, int(middles @ counts), int(lower[0]), most)


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
        # Older versions have a count for each empty bucket.
        most = min(_MOST_BYTES, _SMALL + _MOST_RATIO * len(packed)) if version == _V2 else _MOST_BYTES
        plain = inflater.decompress(packed[_OUTER.size :], most)
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


def _nonzero_words(body: bytes, word: int) -> tuple[Numbers, Numbers]:
    """Return the indices and counts of non-empty buckets from counts of `word` bytes each."""
    counts = np.frombuffer(body[: len(body) // word * word], dtype=f">i{word}").astype(np.int64)
    if ((counts < 0) | (counts >= _MOST)).any():
        raise ValueError("damaged histogram")
    indices = np.flatnonzero(counts)
    return indices, counts[indices]


def _nonzero(body: bytes) -> tuple[Numbers, Numbers]:
    """Return the indices and counts of non-empty buckets. Numbers are zigzag LEB128; a negative one is the length of a
    run of empty buckets."""
    raw = np.frombuffer(body, dtype=np.uint8)
    ends = np.flatnonzero(raw < 1 << _BITS) + 1
    lengths = np.diff(ends, prepend=0)
    if (ends[-1] if len(ends) else 0) != len(raw) or (lengths > _MOST_LENGTH).any():
        raise ValueError("damaged histogram")
    numbers = np.zeros(len(ends), dtype=np.int64)
    for place in range(int(lengths.max(initial=0))):
        longer = lengths > place
        part = raw[(ends - lengths)[longer] + place] & ((1 << _BITS) - 1)
        numbers[longer] |= part.astype(np.int64) << (_BITS * place)
    counts = (numbers >> 1) ^ -(numbers & 1)
    steps = np.where(counts < 0, -counts, 1)
    if (counts >= _MOST).any() or (steps > _MOST_INDEX).any() or steps.sum() > _MOST_INDEX:
        raise ValueError("damaged histogram")
    filled = counts > 0
    return (np.cumsum(steps) - steps)[filled], counts[filled]


def _bounds(indices: Numbers, half: int, magnitude: int, unit: int) -> tuple[Numbers, Numbers]:
    """Return the lowest value and the width (ns) of each bucket. `half` is log2 of half the number of sub-buckets.

    Raises ValueError for values that are too large.
    """
    bucket = np.maximum(0, (indices >> half) - 1)
    place, shift = indices - (bucket << half), bucket + magnitude
    # In floats first: the integers would overflow.
    with np.errstate(over="ignore"):
        if (np.ldexp(place + 1.0, shift) * unit >= _HIGHEST).any():
            raise ValueError(_TOO_LARGE)
    width = (np.int64(1) << shift) * unit
    return place * width, width
