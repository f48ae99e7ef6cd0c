"""Logarithmic buckets with round edges, as fine as the available width allows."""

from __future__ import annotations

import math
from collections.abc import Sequence

from cockpit.model.histogram import Histogram, lower_bound

# Steps within a decade, finest first: preferred numbers (ISO 3), then 1-2-5, halves and whole decades.
_SERIES: tuple[tuple[float, ...], ...] = (
    (1, 1.12, 1.25, 1.4, 1.6, 1.8, 2, 2.24, 2.5, 2.8, 3.15, 3.55, 4, 4.5, 5, 5.6, 6.3, 7.1, 8, 9),
    (1, 1.25, 1.6, 2, 2.5, 3.15, 4, 5, 6.3, 8),
    (1, 1.6, 2.5, 4, 6.3),
    (1, 2, 5),
    (1, 3),
    (1,),
)


def edges_for(histogram: Histogram, most: int) -> tuple[int, ...]:
    """Return edges (ns) of at most `most` buckets that hold every value; empty for an empty histogram.

    Takes the finest series of steps that fits. If even decades do not fit, the last bucket is wider.
    """
    if not histogram.count:
        return ()
    # The histogram counts a value as the lower bound of its bucket, which may be just below the smallest value.
    return edges_between(lower_bound(int(histogram.indices[0])), histogram.max_ns, most)


def edges_between(low: int, high: int, most: int) -> tuple[int, ...]:
    """Like `edges_for`, for all values from `low` to `high` (ns)."""
    if most < 1:
        return ()
    low, high = max(1, low), max(1, high)
    edges: tuple[int, ...] = ()
    for steps in _SERIES:
        edges = _covering(steps, low, high)
        if len(edges) - 1 <= most:
            return edges
    return (*edges[:most], edges[-1])


def edges_filling(low: int, high: int, number: int) -> tuple[int, ...]:
    """Like `edges_between`, but exactly `number` buckets: the lowest decades are divided more finely while there are
    surplus buckets, the last ones continue upwards."""
    low, high = max(1, low), max(1, high)
    edges = edges_between(low, high, number)
    at = next((at for at, steps in enumerate(_SERIES) if edges == _covering(steps, low, high)), None)
    if at is None:
        return edges
    steps = _SERIES[at]
    finer = _covering(_SERIES[at - 1], low, high) if at else ()
    for end in (edge for edge in edges if edge in finer):
        mixed = (*(edge for edge in finer if edge < end), *(edge for edge in edges if edge >= end))
        edges = mixed if len(mixed) <= number + 1 else edges
    above = _covering(steps, edges[-1], edges[-1] * 10 ** (number + 1))
    return (*edges, *above[1:])[: number + 1]


def _covering(steps: Sequence[float], low: int, high: int) -> tuple[int, ...]:
    decades = range(math.floor(math.log10(low)) - 1, math.floor(math.log10(high)) + 2)
    every = sorted({round(step * 10.0**decade) for decade in decades for step in steps if step * 10.0**decade >= 1})
    below = [edge for edge in every if edge <= low][-1:] or [0]
    above = [edge for edge in every if edge > high][:1]
    between = [edge for edge in every if below[0] < edge <= high]
    return tuple(sorted({*below, *between, *above}))
