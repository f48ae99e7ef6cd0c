"""Whether metrics are stable: a trend in a window, and runs that agree with each other."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import NormalDist

import numpy as np

from cockpit.analysis.student import Floats

# Seconds after the start of a run or a change that are never counted: the same for both sides, whatever they show.
GUARD = 3
# A trend counts if it is this unlikely by chance and moves a metric by this share over the window.
TREND_P = 0.002
TREND_SHARE = 0.05
# Share of their median within which stable rates lie.
TOLERANCE = 0.05
_NORMAL = NormalDist()


def trend(values: Floats) -> float:
    """Return the relative trend of a metric from the first value to the last (fell: below 0); 0: no trend."""
    middle = float(np.median(values)) if len(values) else 0.0
    if len(values) < 5 or middle == 0:
        return 0.0
    slope, p = _mann_kendall(values)
    moved = slope * (len(values) - 1) / abs(middle)
    return moved if p < TREND_P and abs(moved) >= TREND_SHARE else 0.0


def _mann_kendall(values: Floats) -> tuple[float, float]:
    """(slope, p): Theil and Sen's slope a sample, and the two-sided p value of there being no trend."""
    n = len(values)
    if n < 3:
        return 0.0, 1.0
    first, second = np.triu_indices(n, 1)
    rises = values[second] - values[first]
    score = abs(int((rises > 0).sum()) - int((rises < 0).sum()))
    ties = np.unique(values, return_counts=True)[1]
    variance = (n * (n - 1) * (2 * n + 5) - float((ties * (ties - 1) * (2 * ties + 5)).sum())) / 18
    slope = float(np.median(rises / (second - first)))
    if variance <= 0:
        return slope, 1.0
    return slope, min(1.0, 2 * _NORMAL.cdf(-max(0, score - 1) / math.sqrt(variance)))


def settled(values: Sequence[float], k: int = 3, chance: float = 0.0) -> bool:
    """Return whether the last `k` rates (of runs or of parts of a run, oldest first) are stable.

    They are if they lie within TOLERANCE of their median, and do not all go the same way by more than half of it in
    all. `chance` is the share by which a rate may be off by chance alone; neither limit is lower.
    """
    if k < 2:
        raise ValueError("at least two values must agree")
    if len(values) < k:
        return False
    last = np.asarray(values[-k:], dtype=np.float64)
    middle = float(np.median(last))
    if middle <= 0:
        return bool((last == middle).all())
    if float(np.abs(last / middle - 1).max()) > max(TOLERANCE, chance):
        return False
    steps = np.diff(last)
    one_way = k > 2 and bool((steps > 0).all() or (steps < 0).all())
    return not (one_way and abs(float(last[-1] - last[0])) / middle > max(TOLERANCE / 2, chance))
