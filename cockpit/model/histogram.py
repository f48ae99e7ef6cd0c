"""HDR histogram: 3 significant digits, nanoseconds, sparse, so that a tick has only its non-empty buckets.

The bucket layout is that of HdrHistogram with a lowest value of 1 and three digits: other implementations can use the
indices unchanged. https://hdrhistogram.github.io/HdrHistogram/
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]

# 2048 sub-buckets give three digits; every further power of two reuses its upper half.
_HALF_BITS = 10
_LARGEST = (1 << 53) - 1
# Widths for `Histogram.coarse`, in buckets: relative width at most 1.6%, and at most 6%.
COARSE = 16
COARSER = 64
# Additions to a histogram with this many buckets are merged on first access; maximum number of unmerged additions.
_LARGE = 1024
_PARTS = 16


def indices_of(values: Ints) -> Ints:
    """Return the bucket index of each value (ns, below 2**53: 104 days)."""
    clipped = np.clip(values, 0, _LARGEST)
    # frexp gives the exponent e with 2**(e-1) <= v < 2**e, exact for integers below 2**53.
    exponents = np.frexp(clipped.astype(np.float64))[1].astype(np.int64)
    shifts = np.maximum(exponents - (_HALF_BITS + 1), 0)
    return (shifts << _HALF_BITS) + (clipped >> shifts)


def index_of(value: int) -> int:
    return int(indices_of(np.array([value], dtype=np.int64))[0])


def upper_bound(index: int) -> int:
    shift = max(0, (index >> _HALF_BITS) - 1)
    return ((index - (shift << _HALF_BITS) + 1) << shift) - 1


def lower_bound(index: int) -> int:
    shift = max(0, (index >> _HALF_BITS) - 1)
    return (index - (shift << _HALF_BITS)) << shift


HIGHEST_INDEX = index_of(_LARGEST)


class Histogram:
    """Immutable counts of values in nanoseconds. `+` and `Histogram.merged` are lossless.

    `indices` (ascending) and `counts` are int64 arrays of equal length; `total_ns`, `min_ns`, `max_ns` are exact.
    A small histogram added to a large one is merged on first access.
    """

    __slots__ = ("_counts", "_indices", "_parts", "count", "filled", "max_ns", "min_ns", "total_ns")

    def __init__(
        self, indices: Ints, counts: Ints, total_ns: int, min_ns: int, max_ns: int, count: int | None = None
    ) -> None:
        """`count`: the sum of `counts`; None: compute it."""
        self._indices = indices
        self._counts = counts
        # Unmerged: the large histogram, then small ones.
        self._parts: tuple[Histogram, ...] = ()
        self.filled = len(indices) > 0
        self.count = int(np.add.reduce(counts)) if count is None else count
        self.total_ns = total_ns
        self.min_ns = min_ns
        self.max_ns = max_ns

    @property
    def indices(self) -> Ints:
        """Indices of the non-empty buckets, ascending."""
        self._merge_parts()
        return self._indices

    @property
    def counts(self) -> Ints:
        """The count of each bucket of `indices`."""
        self._merge_parts()
        return self._counts

    def _merge_parts(self) -> None:
        if self._parts and not len(self._indices):
            whole = _merged(self._parts)
            self._indices, self._counts = whole._indices, whole._counts

    @classmethod
    def of(cls, values_ns: Sequence[int] | Ints) -> Histogram:
        """Return the histogram of values in nanoseconds."""
        values = np.asarray(values_ns, dtype=np.int64)
        if values.size == 0:
            return EMPTY
        indices, counts = np.unique(indices_of(values), return_counts=True)
        return cls(indices, counts.astype(np.int64), int(values.sum()), max(0, int(values.min())), int(values.max()))

    @classmethod
    def merged(cls, parts: Iterable[Histogram]) -> Histogram:
        """Return the sum of all parts, as if all values had been recorded in one histogram."""
        filled = [part for part in parts if part.filled]
        if not filled:
            return EMPTY
        return filled[0] if len(filled) == 1 else _merged(filled)

    def __bool__(self) -> bool:
        return self.filled

    def __add__(self, other: Histogram) -> Histogram:
        if not other.filled:
            return self
        if not self.filled:
            return other
        large, *small = self._parts or (self,)
        if len(large._indices) >= _LARGE and not other._parts and len(other._indices) * 4 <= len(large._indices):
            small.append(other)
            if len(small) == _PARTS:
                small = [_merged(small)]
            if len(small[0]._indices) * 2 <= len(large._indices):
                return self._joined(other, (large, *small))
        return self._add_same_buckets(other) or _merged((self, other))

    def _add_same_buckets(self, other: Histogram) -> Histogram | None:
        """Return the sum if all buckets of `other` are non-empty here too (the common case); else None."""
        mine, theirs = self.indices, other.indices
        places = mine.searchsorted(theirs)
        if places[-1] == len(mine) or mine[places].tobytes() != theirs.tobytes():
            return None
        summed = self._counts[places] + other.counts
        if np.count_nonzero(summed) < len(summed):
            return None
        counts = self._counts.copy()
        counts[places] = summed
        return Histogram(mine, counts, *self._with(other))

    def _joined(self, other: Histogram, parts: tuple[Histogram, ...]) -> Histogram:
        both = Histogram(_NONE, _NONE, *self._with(other))
        both._parts, both.filled = parts, True
        return both

    def _with(self, other: Histogram) -> tuple[int, int, int, int]:
        """Return total, minimum, maximum and count of the sum."""
        low = self.min_ns if self.min_ns < other.min_ns else other.min_ns
        high = self.max_ns if self.max_ns > other.max_ns else other.max_ns
        return self.total_ns + other.total_ns, low, high, self.count + other.count

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Histogram):
            return NotImplemented
        return (
            (self.total_ns, self.min_ns, self.max_ns) == (other.total_ns, other.min_ns, other.max_ns)
            and np.array_equal(self.indices, other.indices)
            and np.array_equal(self.counts, other.counts)
        )

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Histogram(count={self.count}, max={self.max_ns} ns)"

    @property
    def mean(self) -> float:
        return self.total_ns / self.count / 1e9 if self.count else 0.0

    @property
    def max(self) -> float:
        return self.max_ns / 1e9

    @property
    def min(self) -> float:
        return self.min_ns / 1e9

    def percentile(self, percent: float) -> float:
        """Return a percentile in seconds; 0 if the histogram is empty.

        This is the upper bound of its bucket, as in HdrHistogram, but never above the exact maximum.
        """
        if not self.count:
            return 0.0
        rank = max(1, math.ceil(self.count * percent / 100 - 1e-9))
        if rank >= self.count:
            # The index of a coarse bucket is its lowest one; the upper bound of that may be below the maximum.
            return self.max
        at = int(self.counts.cumsum().searchsorted(rank))
        return min(upper_bound(int(self.indices[at])), self.max_ns) / 1e9

    @property
    def deviation(self) -> float:
        """Standard deviation (s), from the middles of the buckets; 0 if empty."""
        if not self.count:
            return 0.0
        middles = self._middles() / 1e9
        return float(np.sqrt(np.average((middles - self.mean) ** 2, weights=self.counts)))

    def values(self) -> list[tuple[float, int]]:
        """Return (middle in ns, count) of each non-empty bucket, ascending."""
        return list(zip(self._middles().tolist(), self.counts.tolist(), strict=True))

    def _middles(self) -> npt.NDArray[np.float64]:
        shifts = np.maximum((self.indices >> _HALF_BITS) - 1, 0)
        middles: npt.NDArray[np.float64] = self._lower_bounds() + ((1 << shifts) - 1) / 2
        return np.clip(middles, self.min_ns, self.max_ns)

    def between(self, edges_ns: Sequence[int]) -> list[int]:
        """Return the count of each range edges[i] <= lower bound < edges[i+1]; values outside are not counted."""
        if not self.count:
            return [0] * (len(edges_ns) - 1)
        lower = self._lower_bounds()
        places = np.searchsorted(lower, np.asarray(edges_ns, dtype=np.int64))
        running = np.concatenate(([0], np.cumsum(self.counts)))
        return [int(n) for n in np.diff(running[places])]

    def _lower_bounds(self) -> Ints:
        shifts = np.maximum((self.indices >> _HALF_BITS) - 1, 0)
        bounds: Ints = (self.indices - (shifts << _HALF_BITS)) << shifts
        return bounds

    def coarse(self, width: int = COARSE) -> Histogram:
        """Return the same counts in buckets `width` (a power of 2) times as wide, each with its lowest index.

        With the default width, buckets are at most 1.6% wide, and many histograms fit into memory.
        """
        if not self.count:
            return EMPTY
        indices = self.indices & -width
        begins = np.ones(len(indices), dtype=np.bool_)
        np.not_equal(indices[1:], indices[:-1], out=begins[1:])
        first = begins.nonzero()[0]
        counts = np.add.reduceat(self.counts, first)
        return Histogram(indices[first], counts, self.total_ns, self.min_ns, self.max_ns, self.count)

    def to_wire(self) -> list[Any]:
        """Return [total, min, max, gap, count, gap, count, …]; gaps between indices are small in JSON and compress
        well."""
        pairs = np.empty(2 * len(self.indices), dtype=np.int64)
        pairs[0::2] = np.diff(self.indices, prepend=0)
        pairs[1::2] = self.counts
        return [self.total_ns, self.min_ns, self.max_ns, *pairs.tolist()]

    @classmethod
    def from_wire(cls, wire: Sequence[int]) -> Histogram:
        """Decode the result of `to_wire`. Raises ValueError if it is invalid."""
        if len(wire) < 3 or len(wire) % 2 == 0 or not all(type(number) is int for number in wire[:3]):
            raise ValueError("a histogram is [total, min, max] and pairs of gap and count")
        if len(wire) == 3:
            return EMPTY
        try:
            pairs = np.asarray(wire[3:], dtype=np.int64)
        except OverflowError:
            raise ValueError("a histogram has a number of more than 64 bits") from None
        return cls(pairs[0::2].cumsum(), pairs[1::2], wire[0], wire[1], wire[2])


def _merged(parts: Sequence[Histogram]) -> Histogram:
    """Merge non-empty parts; buckets whose counts add up to 0 are left out."""
    indices = np.concatenate([part.indices for part in parts])
    order = np.argsort(indices, kind="stable")
    indices = indices[order]
    first = np.flatnonzero(np.concatenate(([True], indices[1:] != indices[:-1])))
    indices, counts = indices[first], np.add.reduceat(np.concatenate([part.counts for part in parts])[order], first)
    if not counts.all():
        indices, counts = indices[counts != 0], counts[counts != 0]
    return Histogram(indices, counts, sum(part.total_ns for part in parts), *_span(parts))


def _span(parts: Sequence[Histogram]) -> tuple[int, int]:
    return min(part.min_ns for part in parts), max(part.max_ns for part in parts)


_NONE = np.empty(0, dtype=np.int64)
EMPTY = Histogram(_NONE, _NONE, 0, 0, 0)


def to_wire(value: Any) -> Any:
    """Encode a type that msgspec does not support."""
    if isinstance(value, Histogram):
        return value.to_wire()
    raise NotImplementedError(f"no wire form for {type(value)}")


def from_wire(kind: type, value: Any) -> Any:
    """Decode a type that msgspec does not support."""
    if kind is Histogram:
        return Histogram.from_wire(value)
    raise NotImplementedError(f"no wire form for {kind}")
