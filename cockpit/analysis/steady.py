"""Whether figures have settled: the warm-up of a window, a trend in it, and runs that agree with each other."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from cockpit.analysis.ranks import Floats, mann_kendall

# Seconds after the beginning of a row or a change that are never counted: replies to what was sent before it.
GUARD = 2
# A warm-up longer than this share of a window is not left out: the window is then said not to be steady.
_LONGEST = 0.5
# Figures are looked at in fives, so that a single odd second cannot pass for a warm-up.
_BATCH = 5
# How far, in standard errors, what is left out must lie from the rest.
_APART = 3.0

# A trend counts when it is this unlikely by chance and moves a figure by this share over the window.
TREND_P = 0.002
TREND_SHARE = 0.05


def warmup(values: Sequence[float]) -> int:
    """How many of the first values belong to a warm-up: White's rule (MSER-5).

    The cut that leaves the mean of the rest most certain, at most half way; 0 where what would be left out does not
    stand clearly apart from the rest.
    """
    batches = len(values) // _BATCH
    if batches < 4:
        return 0
    means = np.asarray(values[: batches * _BATCH], dtype=np.float64).reshape(batches, _BATCH).mean(axis=1)
    cuts = range(int(batches * _LONGEST) + 1)
    cut = min(cuts, key=lambda at: float(means[at:].var()) / (batches - at))
    if cut == 0:
        return 0
    rest = means[cut:]
    apart = abs(float(means[:cut].mean() - rest.mean()))
    error = float(rest.std(ddof=1)) * (1 / cut + 1 / len(rest)) ** 0.5
    return cut * _BATCH if apart > _APART * error else 0


def trend(values: Floats, inflation: float = 1.0) -> float:
    """By which share of its median a figure rose (fell: below 0) from the first value to the last; 0: no trend."""
    middle = float(np.median(values)) if len(values) else 0.0
    if len(values) < 5 or middle == 0:
        return 0.0
    slope, p = mann_kendall(values, inflation)
    moved = slope * (len(values) - 1) / abs(middle)
    return moved if p < TREND_P and abs(moved) >= TREND_SHARE else 0.0


def settled(values: Sequence[float], k: int = 3, tolerance: float = 0.05) -> bool:
    """Whether the last `k` values lie within `tolerance` of their median and do not go on rising or falling.

    The values are rates of runs or of blocks, oldest first. `k` values that each go the same way by more than half
    the tolerance in all have not settled, however near each other they lie.
    """
    if k < 2:
        raise ValueError("at least two values must agree")
    if len(values) < k:
        return False
    last = np.asarray(values[-k:], dtype=np.float64)
    middle = float(np.median(last))
    if middle <= 0:
        return bool((last == middle).all())
    if float(np.abs(last / middle - 1).max()) > tolerance:
        return False
    steps = np.diff(last)
    one_way = k > 2 and bool((steps > 0).all() or (steps < 0).all())
    return not (one_way and abs(float(last[-1] - last[0])) / middle > tolerance / 2)
