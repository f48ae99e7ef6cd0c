"""A histogram from the percentiles of a summary. Pure.

Between two neighbouring percentiles lie as many values as their ranks are apart: of 10,000 values, 900 between p90 and
p99. The last of them is the higher percentile, as the summary has it; the others are interpolated, evenly on a
logarithmic scale. Below the lowest percentile all values are put at it, above the highest likewise. So each reported
percentile is read back as it was (within a bucket, 0.1%), one between two others lies between their values, and one
below the lowest is too high.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np

from cockpit.imports.hdr import SUM
from cockpit.model.histogram import EMPTY, Histogram, Ints, index_of, lower_bound

# Summaries round: a percentile may be lower than the one before, and a mean above the maximum, by this share.
_ROUNDED = 0.01
# No request takes longer (s).
_LONGEST = 1e6
_NS = 1e9


def histogram_of(points: Iterable[tuple[float, float]], count: int, mean: float | None = None) -> Histogram:
    """Return the histogram of `count` values by their `points` (per cent, seconds), of which 0 is the minimum and 100
    the maximum. `mean` (s) None: that of the histogram.

    Raises ValueError if the points contradict each other, or the mean.
    """
    ordered = sorted(points)
    ranks = _ranks(ordered, count)
    if not ranks or count < 1:
        return EMPTY
    indices: list[Ints] = []
    counts: list[Ints] = []
    rank, low = 0, next(iter(ranks.values()))
    for reached, high in ranks.items():
        buckets, numbers = _spread(low, high, reached - rank)
        indices.append(buckets)
        counts.append(numbers)
        rank, low = reached, high
    first, last = round(_NS * ordered[0][1]), low
    indices.append(np.array([index_of(last)], dtype=np.int64))
    counts.append(np.array([count - rank], dtype=np.int64))
    found, places = np.unique(np.concatenate(indices), return_inverse=True)
    sums = np.zeros(len(found), dtype=np.int64)
    np.add.at(sums, places, np.concatenate(counts))
    kept = sums > 0
    plain = Histogram(found[kept], sums[kept], 0, first, last)
    return Histogram(found[kept], sums[kept], _total(plain, mean), first, last)


def _ranks(points: Iterable[tuple[float, float]], count: int) -> dict[int, int]:
    """Return the value (ns) at each rank, ascending; of points with one rank, that of the highest."""
    found: dict[int, int] = {}
    before = 0
    for percent, seconds in points:
        if not 0 <= percent <= 100 or not 0 <= seconds <= _LONGEST:
            raise ValueError(f"p{percent:g} of {seconds:g} s is out of range")
        value = round(_NS * seconds)
        if value < before * (1 - _ROUNDED):
            raise ValueError(f"p{percent:g} is less than the percentile below it")
        before = max(before, value)
        found[max(1, math.ceil(count * percent / 100 - 1e-9))] = before
    return found


def _spread(low: int, high: int, number: int) -> tuple[Ints, Ints]:
    """Return the buckets, and their counts, of `number` values above `low` (ns), the last of which is `high`."""
    first, last = index_of(max(1, low)), index_of(max(1, high))
    if first == last or number == 1:
        return np.array([index_of(high)], dtype=np.int64), np.array([number], dtype=np.int64)
    buckets = np.arange(first, last + 1, dtype=np.int64)
    edges = np.array([lower_bound(index) for index in range(first + 1, last + 1)], dtype=np.float64)
    low = max(1, low)
    shares = np.log(edges / low) / math.log(high / low)
    # The j-th of n values is at the share j/n of the logarithm: below an edge are those with j less than n times its.
    below = np.clip(np.ceil(shares * number) - 1, 0, number - 1).astype(np.int64)
    return buckets, np.diff(below, prepend=0, append=number)


def _total(histogram: Histogram, mean: float | None) -> int:
    """Return the sum (ns): `mean` times the count, or by the buckets."""
    if mean is None:
        total = sum(middle * number for middle, number in histogram.values())
    else:
        if not 0 <= mean <= histogram.max * (1 + _ROUNDED):
            raise ValueError("the mean latency is above the maximum")
        total = min(mean * _NS, histogram.max_ns) * histogram.count
    if total >= SUM:
        raise ValueError("latencies add up to decades")
    return round(total)
