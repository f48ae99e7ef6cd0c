"""One change under running load: conclusions while the time after it grows.

The seconds before and after one switch are no replications, and a drift looks like an effect. So an effect is called
only when it exceeds a bound that holds at all tests together (a normal mixture), for the difference of the means and
for the step beside a slope that both sides share alike, at three tests in a row. The variance is that of long batches,
not of seconds. What was called stays: a disturbance later widens the bound, but says nothing about the time before it.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from cockpit.analysis.intervals import ALPHA, Floats, Interval, student_quantile

# Blocks of the longest batch (30 s), and blocks that each side needs (25 s).
_LONGEST = 6
LEAST = 5
# Tests in a row, one block apart, at which an effect must exceed its bound.
IN_A_ROW = 3
# Blocks after the switch (5 min) from which on only each twelfth (1 min) is tested.
_EACH_BLOCK = 60
_COARSE = 12
# Deviation of the prior of the effect (log scale): the bound is tightest for effects of about this size. At least this
# multiple of the variance of a block: with a prior far below the noise, the bound would grow with the noise's square.
_PRIOR = 0.05
_PRIOR_BLOCKS = 1.5
# Log scale: how far a level may wander after the switch without a trace in the time before. Of slow waves of 3% with
# periods of 60 to 240 s, 7% were called an effect without this allowance and 2% with it.
_WANDER = 0.005
# Normal quantile of a power of 80%.
_POWER = 0.84


class Variance(NamedTuple):
    """Long-run variance per block, with the degrees of freedom it was estimated with."""

    value: float
    freedom: int


def effect(before: Floats, after: Floats, alpha: float = ALPHA, between: int = 0) -> Interval:
    """Return the effect of a switch with an anytime-valid interval: both arrays have one value per block, and blocks of
    other settings lie `between` them.

    The interval covers the difference of the means and the step; an end is infinite if a side is too short. It
    excludes 0 only if those of IN_A_ROW tests in a row did. It is what all tests so far have in common, as long as the
    estimate stays in it.
    """
    *_, (_, found) = effect_over_time(before, after, alpha, between)
    return found


def effect_over_time(
    before: Floats, after: Floats, alpha: float = ALPHA, between: int = 0
) -> Iterator[tuple[int, Interval]]:
    """Yield how many blocks after the switch there were at each test until now, and the effect as it was then."""
    tests: deque[Interval] = deque(maxlen=IN_A_ROW)
    found = Interval(0.0, -math.inf, math.inf)
    for number in _tested(len(after)):
        tests.append(single_test(before, after[:number], alpha, between))
        found = _narrowed(found, _confirmed(tests))
        yield number, found


def _tested(blocks: int) -> list[int]:
    numbers = range(LEAST, blocks + 1)
    return [number for number in numbers if number <= _EACH_BLOCK or not number % _COARSE] or [blocks]


def _narrowed(known: Interval, now: Interval) -> Interval:
    """Return what both intervals have in common, and the present estimate; the present one if that is nothing."""
    low, high = max(known.low, now.low), min(known.high, now.high)
    if low > high:
        return now
    return Interval(now.estimate, min(low, now.estimate), max(high, now.estimate))


def _confirmed(tests: Sequence[Interval]) -> Interval:
    """Return the interval that holds at all of these consecutive tests, with the last one's estimate.

    It includes 0 if there are fewer than IN_A_ROW.
    """
    early = [0.0] if len(tests) < IN_A_ROW else []
    low = min(*early, *(test.low for test in tests), math.inf)
    return Interval(tests[-1].estimate, low, max(*early, *(test.high for test in tests), -math.inf))


def first_impression(before: Floats, after: Floats) -> Interval:
    """Return the interval of a hunch, from LEAST blocks before the switch and one after it on.

    It holds at a single test, and for noise that batches of these blocks show: enough for a hunch, not for a verdict.
    """
    variance = long_run_variance(before, after)
    error = math.sqrt(variance.value * (1 / len(before) + 1 / len(after)))
    reach = student_quantile(1 - ALPHA / 2, variance.freedom)
    return Interval.around(float(after.mean() - before.mean()), reach * error)


def single_test(before: Floats, after: Floats, alpha: float = ALPHA, between: int = 0) -> Interval:
    """Return the interval of a single test; see effect."""
    if not len(before) or not len(after):
        return Interval(0.0, -math.inf, math.inf)
    difference = float(after.mean() - before.mean())
    if min(len(before), len(after)) < LEAST:
        return Interval(difference, -math.inf, math.inf)
    half = bound(long_run_variance(before, after), len(before), len(after), alpha)
    step = _step(before, after, between)
    return Interval(difference, min(difference, step) - half, max(difference, step) + half)


def _step(before: Floats, after: Floats, between: int = 0) -> float:
    """Return how far the level after the switch is above the one before, beside a slope that both sides share, over the
    blocks `between` them too.

    A slope of the short time before alone, carried on over all the time after, would grow with time out of noise.
    """
    times = [np.arange(len(side)) - (len(side) - 1) / 2 for side in (before, after)]
    rise = sum(float(time @ side) for time, side in zip(times, (before, after), strict=True))
    slope = rise / sum(float(time @ time) for time in times)
    return float(after.mean() - before.mean()) - slope * ((len(before) + len(after)) / 2 + between)


def bound(variance: Variance, before: int, after: int, alpha: float = ALPHA) -> float:
    """Return the half width for this many blocks on each side."""
    if not variance.value:
        return 0.0
    error = variance.value * (1 / before + 1 / after)
    prior = max(_PRIOR**2, _PRIOR_BLOCKS * variance.value)
    mixture = math.sqrt(error * (error + prior) / prior * (2 * math.log(1 / alpha) + math.log((error + prior) / error)))
    return _WANDER + mixture * student_quantile(0.975, variance.freedom) / student_quantile(0.975, 1e6)


def detectable(before: Floats, after: Floats, alpha: float = ALPHA) -> float:
    """Return the smallest effect that would exceed the bound with a probability of 80%, drift left aside."""
    variance = long_run_variance(before, after)
    error = math.sqrt(variance.value * (1 / len(before) + 1 / len(after)))
    return bound(variance, len(before), len(after), alpha) + _POWER * error


def long_run_variance(before: Floats, after: Floats) -> Variance:
    """Return the largest variance that batches of one to six blocks show, scaled to one block."""
    largest = Variance(0.0, 1)
    for length in range(1, _LONGEST + 1):
        means = [_batches(side, length) for side in (before, after)]
        freedom = sum(len(one) - 1 for one in means if len(one) > 1)
        if freedom < 3:
            continue
        squares = sum(_squares(one) for one in means if len(one) > 1)
        if length * squares / freedom > largest.value:
            largest = Variance(length * squares / freedom, freedom)
    return largest


def blocks_needed(before: Floats, after: Floats, least: float, alpha: float = ALPHA, between: int = 0) -> int | None:
    """Return how many blocks after the switch, more than there are, it takes for the effect to exceed its bound, when
    effect and noise stay as they are; an effect below `least` is taken for that. None: the time before is too short."""
    variance = long_run_variance(before, after)
    difference, step = float(after.mean() - before.mean()), _step(before, after, between)
    wanted = max(least, min(abs(difference), abs(step)) if difference * step > 0 else 0.0)
    for number in range(max(LEAST + IN_A_ROW - 1, len(after) + 1), 2001):
        if bound(variance, len(before), number, alpha) < wanted:
            return number
    return None


def _batches(values: Floats, length: int) -> Floats:
    """Means of batches, the newest blocks first in line."""
    number = len(values) // length
    means: Floats = np.add.reduce(values[len(values) - number * length :].reshape(number, length), axis=1) / length
    return means


def _squares(values: Floats) -> float:
    """Sum of squared deviations from the mean. `reduce` itself: for a few values, mean() takes five times as long."""
    apart = values - np.add.reduce(values) / len(values)
    return float(np.add.reduce(apart * apart))
