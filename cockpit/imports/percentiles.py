"""A histogram from the percentiles of a summary. Pure.

The number of values between two neighbouring percentiles is the difference of their ranks: of 10,000 values, 900 are
between p90 and p99. The last of them is the higher percentile; the others are interpolated evenly on a logarithmic
scale. All values below the lowest percentile are set to it, those above the highest likewise. So each reported
percentile is reproduced within a bucket (0.1%), percentiles between two others are between their values, and
percentiles below the lowest one are too high.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np

from cockpit.imports.hdr import SUM
from cockpit.model.histogram import EMPTY, Histogram, Ints, index_of, lower_bound

# Relative error of rounded values in summaries, by which a percentile may be below the previous one, and the mean above
# the maximum.
_ROUNDED = 0.01
# Maximum duration of a request (s).
_LONGEST = 1e6
_NS = 1e9


def histogram_of(points: Iterable[tuple[float, float]], count: int, mean: float | None = None) -> Histogram:
    """Return the histogram of `count` values from their percentiles (per cent, seconds); 0 is the minimum, 100 the
    maximum. `mean` in seconds; None: the mean of the interpolated values.

    Raises ValueError if the percentiles contradict each other, or the mean.
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
    distinct, places = np.unique(np.concatenate(indices), return_inverse=True)
    sums = np.zeros(len(distinct), dtype=np.int64)
    np.add.at(sums, places, np.concatenate(counts))
    kept = sums > 0
    plain = Histogram(distinct[kept], sums[kept], 0, first, last)
    return Histogram(distinct[kept], sums[kept], _total(plain, mean), first, last)


def _ranks(points: Iterable[tuple[float, float]], count: int) -> dict[int, int]:
    """Return the value (ns) at each rank, ascending; percentiles with the same rank have the highest value."""
    ranks: dict[int, int] = {}
    before = 0
    for percent, seconds in points:
        if not 0 <= percent <= 100 or not 0 <= seconds <= _LONGEST:
            raise ValueError(f"p{percent:g} of {seconds:g} s is out of range")
        value = round(_NS * seconds)
        if value < before * (1 - _ROUNDED):
            raise ValueError(f"p{percent:g} is less than the percentile below it")
        before = max(before, value)
        ranks[max(1, math.ceil(count * percent / 100 - 1e-9))] = before
    return ranks


def _spread(low: int, high: int, number: int) -> tuple[Ints, Ints]:
    """Return the buckets and counts of `number` values from above `low` to `high` (ns); the last one is `high`."""
    first, last = index_of(max(1, low)), index_of(max(1, high))
    if first == last or number == 1:
        return np.array([index_of(high)], dtype=np.int64), np.array([number], dtype=np.int64)
    buckets = np.arange(first, last + 1, dtype=np.int64)
    edges = np.array([lower_bound(index) for index in range(first + 1, last + 1)], dtype=np.float64)
    low = max(1, low)
    shares = np.log(edges / low) / math.log(high / low)
    # Value j of n is at the share j/n on the logarithmic scale; the values below an edge have j < n times its share.
    below = np.clip(np.ceil(shares * number) - 1, 0, number - 1).astype(np.int64)
    return buckets, np.diff(below, prepend=0, append=number)


def _total(histogram: Histogram, mean: float | None) -> int:
    """Return the sum (ns) of all values: `mean` times the count, or from the buckets."""
    if mean is None:
        total = sum(middle * number for middle, number in histogram.values())
    else:
        if not 0 <= mean <= histogram.max * (1 + _ROUNDED):
            raise ValueError("the mean latency is above the maximum")
        total = min(mean * _NS, histogram.max_ns) * histogram.count
    if total >= SUM:
        raise ValueError("latencies add up to decades")
    return round(total)
