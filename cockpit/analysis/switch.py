"""One change under running load: conclusions while the time after it grows.

The seconds before and after one switch are no replications, and a drift looks like an effect. So an effect is called
only when it exceeds a bound that holds at all tests together (a normal mixture), for the difference of the means and
for the step beside a slope that both sides share alike, at three tests in a row. The variance is that of long batches,
not of seconds. What was called stays: a disturbance later widens the bound, but says nothing about the time before it.

A stall of the server makes a few blocks outliers. They widen the bound for a long time, so an effect is also called
when it exceeds its bound without the outliers that speak for it: those that make the side before worse and the side
after better, if it is an improvement. Leaving these out makes the effect smaller, never larger.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterator, Sequence
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
# A block this many deviations (of the normal distribution with the same median deviation) off the median is an outlier.
_OUTLIER = 4.0
_NORMAL_MAD = 1.4826

# Brings the blocks of a side to the scale on which the sides' means are compared.
Scale = Callable[[Floats], Floats]


def unscaled(values: Floats) -> Floats:
    return values


def ratio_scale(values: Floats) -> Floats:
    """Return the scale on which the difference of two sides is the logarithm of the ratio of their arithmetic means.

    Unlike logarithms, it gives a block in which the server stalled no more weight than the responses that are missing.
    Without any response all is nan.
    """
    mean = float(values.mean())
    return math.log(mean) + values / mean - 1 if mean > 0 else np.full(len(values), np.nan)


class Variance(NamedTuple):
    """Long-run variance per block, with the degrees of freedom it was estimated with."""

    value: float
    freedom: int


class _Side(NamedTuple):
    """Blocks of one side, and of batches of each length the sum of squared deviations and the degrees of freedom."""

    values: Floats
    batches: tuple[tuple[float, int], ...]

    @classmethod
    def of(cls, values: Floats) -> _Side:
        lengths = range(1, min(_LONGEST, len(values) // 2) + 1)
        return cls(values, tuple(_squares(_batches(values, length)) for length in lengths))


class Views(NamedTuple):
    """One side on its scale: all blocks, and those with outliers of one direction moved to the fence."""

    whole: _Side
    without_low: _Side
    without_high: _Side

    @classmethod
    def of(cls, values: Floats) -> Views:
        whole = _Side.of(values)
        middle = _median(values)
        reach = _OUTLIER * _NORMAL_MAD * _median(np.abs(values - middle))
        low = _Side.of(np.maximum(values, middle - reach)) if values.min() < middle - reach else whole
        high = _Side.of(np.minimum(values, middle + reach)) if values.max() > middle + reach else whole
        return cls(whole, low, high)


class _Contrast(NamedTuple):
    """The difference of two sides' means, the step between them beside their common slope, and the variance and the
    number of their blocks."""

    difference: float
    step: float
    variance: Variance
    before: int
    after: int

    @classmethod
    def of(cls, before: _Side, after: _Side, between: int) -> _Contrast:
        one, two = before.values, after.values
        difference = float(two.mean() - one.mean())
        step = difference - _slope(one, two) * ((len(one) + len(two)) / 2 + between)
        return cls(difference, step, _variance(before, after), len(one), len(two))

    @property
    def certain(self) -> float:
        """The part of the effect that difference and step share, 0 or above."""
        agree = self.difference * self.step > 0
        return min(abs(self.difference), abs(self.step)) if agree else 0.0

    def interval(self, alpha: float) -> Interval:
        half = bound(self.variance, self.before, self.after, alpha)
        low, high = sorted((self.difference, self.step))
        return Interval(self.difference, low - half, high + half)


def effect(before: Floats, after: Floats, alpha: float = ALPHA, between: int = 0, scale: Scale = unscaled) -> Interval:
    """Return the effect of a switch with an anytime-valid interval: both arrays have one value per block, and blocks of
    other settings lie `between` them.

    The interval covers the difference of the means and the step; an end is infinite if a side is too short. It
    excludes 0 only if those of IN_A_ROW tests in a row did. It is what all tests so far have in common, as long as the
    estimate stays in it.
    """
    *_, (_, found) = effect_over_time(before, after, alpha, between, scale)
    return found


def effect_over_time(
    before: Floats, after: Floats, alpha: float = ALPHA, between: int = 0, scale: Scale = unscaled
) -> Iterator[tuple[int, Interval]]:
    """Yield how many blocks after the switch there were at each test until now, and the effect as it was then."""
    views = Views.of(scale(before))
    return over_time(lambda number: test_of(views, after[:number], alpha, between, scale), len(after))


def over_time(test: Callable[[int], Interval], blocks: int) -> Iterator[tuple[int, Interval]]:
    """Yield the number of blocks after the switch and the effect at each test. `test` takes that number."""
    tests: deque[Interval] = deque(maxlen=IN_A_ROW)
    found = Interval(0.0, -math.inf, math.inf)
    for number in _tested(blocks):
        tests.append(test(number))
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


def first_impression(before: Floats, after: Floats, scale: Scale = unscaled) -> Interval:
    """Return the interval of a hunch, from LEAST blocks before the switch and one after it on.

    It holds at a single test, and for noise that batches of these blocks show: enough for a hunch, not for a verdict.
    """
    before, after = scale(before), scale(after)
    variance = long_run_variance(before, after)
    error = math.sqrt(variance.value * (1 / len(before) + 1 / len(after)))
    reach = student_quantile(1 - ALPHA / 2, variance.freedom)
    return Interval.around(float(after.mean() - before.mean()), reach * error)


def single_test(
    before: Floats, after: Floats, alpha: float = ALPHA, between: int = 0, scale: Scale = unscaled
) -> Interval:
    """Return the interval of a single test; see effect."""
    return test_of(Views.of(scale(before)), after, alpha, between, scale)


def test_of(before: Views, after: Floats, alpha: float, between: int, scale: Scale) -> Interval:
    """Return the interval of a single test; the side before is on its scale."""
    whole, up, down = _contrasts(before, Views.of(scale(after)), between)
    if math.isnan(whole.difference):
        return Interval(0.0, -math.inf, math.inf)
    if min(whole.before, whole.after) < LEAST:
        return Interval(whole.difference, -math.inf, math.inf)
    low, high = whole.interval(alpha)[1:]
    return Interval(whole.difference, max(low, up.interval(alpha).low), min(high, down.interval(alpha).high))


def _contrasts(before: Views, after: Views, between: int) -> tuple[_Contrast, _Contrast, _Contrast]:
    """Return the contrast of all blocks, and those without the outliers that speak for a rise and for a fall."""
    whole = _Contrast.of(before.whole, after.whole, between)

    def without(one: _Side, two: _Side) -> _Contrast:
        same = one is before.whole and two is after.whole
        return whole if same else _Contrast.of(one, two, between)

    return whole, without(before.without_low, after.without_high), without(before.without_high, after.without_low)


def _slope(before: Floats, after: Floats) -> float:
    """Return the slope per block that both sides share.

    A slope of the short time before alone, carried on over all the time after, would grow with time out of noise.
    """
    times = [np.arange(len(side)) - (len(side) - 1) / 2 for side in (before, after)]
    rise = sum(float(time @ side) for time, side in zip(times, (before, after), strict=True))
    spans = sum(float(time @ time) for time in times)
    return rise / spans if spans else 0.0


def bound(variance: Variance, before: int, after: int, alpha: float = ALPHA) -> float:
    """Return the half width for this many blocks on each side."""
    if not variance.value:
        return 0.0
    error = variance.value * (1 / before + 1 / after)
    prior = max(_PRIOR**2, _PRIOR_BLOCKS * variance.value)
    mixture = math.sqrt(error * (error + prior) / prior * (2 * math.log(1 / alpha) + math.log((error + prior) / error)))
    return _WANDER + mixture * student_quantile(0.975, variance.freedom) / student_quantile(0.975, 1e6)


def detectable(before: Floats, after: Floats, alpha: float = ALPHA, scale: Scale = unscaled) -> float:
    """Return the smallest effect that would exceed the bound with a probability of 80%, drift left aside."""
    variance = _variance(_Side.of(scale(before)), _Side.of(scale(after)))
    error = math.sqrt(variance.value * (1 / len(before) + 1 / len(after)))
    return bound(variance, len(before), len(after), alpha) + _POWER * error


def detectable_after(before: Floats, blocks: int, after: int, alpha: float = ALPHA, scale: Scale = unscaled) -> float:
    """Return the smallest effect that `after` blocks after the switch would find with a probability of 80%, without
    drift. `blocks`: the number of blocks before the switch, with the variance of `before` (LEAST or more)."""
    found = _pooled(_Side.of(scale(before)))
    variance = found._replace(freedom=max(1, round(found.freedom * (blocks - 1) / (len(before) - 1))))
    error = math.sqrt(variance.value * (1 / blocks + 1 / after))
    return bound(variance, blocks, after, alpha) + _POWER * error


def long_run_variance(before: Floats, after: Floats) -> Variance:
    """Return the largest variance that batches of one to six blocks show, scaled to one block."""
    return _pooled(_Side.of(before), _Side.of(after))


def _pooled(*sides: _Side) -> Variance:
    largest = Variance(0.0, 1)
    for length in range(1, _LONGEST + 1):
        known = [side.batches[length - 1] for side in sides if len(side.batches) >= length]
        freedom = sum(number for _, number in known)
        if freedom >= 3 and (value := length * sum(squares for squares, _ in known) / freedom) > largest.value:
            largest = Variance(value, freedom)
    return largest


def _variance(before: _Side, after: _Side) -> Variance:
    """Return the variance per block of the difference of the means: that pooled over both sides, or that of each side
    by itself if that is more, for many calm blocks say nothing about the error of few uneven ones."""
    pooled = _pooled(before, after)
    shares = [1 / len(side.values) for side in (before, after)]
    apart = sum(share * _pooled(side).value for share, side in zip(shares, (before, after), strict=True)) / sum(shares)
    return pooled._replace(value=max(pooled.value, apart))


def blocks_needed(
    before: Floats, after: Floats, least: float, alpha: float = ALPHA, between: int = 0, scale: Scale = unscaled
) -> int | None:
    """Return how many blocks after the switch, more than there are, it takes for the effect to exceed its bound, when
    effect and noise stay as they are; an effect below `least` is taken for that. None: the time before is too short."""
    whole, up, down = _contrasts(Views.of(scale(before)), Views.of(scale(after)), between)
    robust = up if whole.difference > 0 else down
    ways = [(whole.variance, max(least, whole.certain))]
    if robust.difference * whole.difference > 0:
        ways.append((robust.variance, robust.certain))
    for number in range(max(LEAST + IN_A_ROW - 1, len(after) + 1), 2001):
        if any(bound(variance, len(before), number, alpha) < wanted for variance, wanted in ways):
            return number
    return None


def _batches(values: Floats, length: int) -> Floats:
    """Means of batches, the newest blocks first in line."""
    number = len(values) // length
    means: Floats = np.add.reduce(values[len(values) - number * length :].reshape(number, length), axis=1) / length
    return means


def _median(values: Floats) -> float:
    """Return the median; np.median takes five times as long for a few values."""
    ordered = np.sort(values)
    return float(ordered[(len(ordered) - 1) // 2] + ordered[len(ordered) // 2]) / 2


def _squares(values: Floats) -> tuple[float, int]:
    """Return the sum of squared deviations from the mean, and its degrees of freedom. `reduce` itself: for a few
    values, mean() takes five times as long."""
    apart = values - np.add.reduce(values) / len(values)
    return float(np.add.reduce(apart * apart)), len(values) - 1
