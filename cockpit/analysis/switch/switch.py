"""One change under running load: an anytime-valid conclusion while the time after it grows.

Seconds before and after one switch are not replications, and a drift looks like an effect. An effect is therefore
called only if it exceeds an anytime-valid bound (a normal mixture), both for the difference of the means and for the
step beside a common slope of both sides, at three consecutive tests. The variance is that of long batches, not of
seconds. A conclusion stays: a later disturbance widens the bound, but carries no information about the time before it.

A stall of the server makes a few blocks outliers, which widen the bound for a long time. An effect is therefore also
called if it exceeds its bound without the outliers that favour it: for an improvement, those that make the side before
worse and the side after better. Without them the effect is smaller, never larger.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from cockpit.analysis.cache import cached_by_value
from cockpit.analysis.intervals import ALPHA, Floats, Interval, student_quantile

# Blocks in the longest batch (30 s), and minimum blocks per side (25 s).
_LONGEST = 6
LEAST = 5
# Consecutive tests, one block apart, at which an effect must exceed its bound.
IN_A_ROW = 3
# After this many blocks (5 min), only every twelfth block (1 min) is tested.
_EACH_BLOCK = 60
_COARSE = 12
# Standard deviation of the effect's prior (log scale): the bound is tightest for effects of about this size. The prior
# variance is at least _PRIOR_BLOCKS times the variance of a block: with a prior far below the noise, the bound would
# grow with the square of the noise.
_PRIOR = 0.05
_PRIOR_BLOCKS = 1.5
# Allowance (log scale) for drift after the switch that the time before does not show. Of slow waves of 3% with periods
# of 60 to 240 s, 7% were called an effect without this allowance and 2% with it.
_DRIFT_ALLOWANCE = 0.005
# Normal quantile of a power of 80%.
_POWER = 0.84
# Outliers are blocks this many robust standard deviations (scaled median absolute deviation) from the median.
_OUTLIER = 4.0
_NORMAL_MAD = 1.4826

# Transforms the blocks of a side to the scale on which means are compared.
Scale = Callable[[Floats], Floats]


def unscaled(values: Floats) -> Floats:
    return values


def ratio_scale(values: Floats) -> Floats:
    """Return values on the scale on which the difference of two means is the log ratio of the arithmetic means.

    Unlike with logarithms, a block in which the server stalled weighs no more than its missing responses. All nan
    without any response.
    """
    mean = float(values.mean())
    return math.log(mean) + values / mean - 1 if mean > 0 else np.full(len(values), np.nan)


class Variance(NamedTuple):
    """Long-run variance per block, with the degrees of freedom it was estimated with."""

    value: float
    freedom: int


class _Side(NamedTuple):
    """Blocks of one side, and for each batch length the sum of squared deviations with its degrees of freedom."""

    values: Floats
    batches: tuple[tuple[float, int], ...]

    @classmethod
    def of(cls, values: Floats) -> _Side:
        lengths = range(1, min(_LONGEST, len(values) // 2) + 1)
        return cls(values, tuple(_squares(_batches(values, length)) for length in lengths))


class WinsorizedSides(NamedTuple):
    """One side on its scale: the blocks as they are, with low outliers winsorized, and with high ones winsorized."""

    whole: _Side
    without_low: _Side
    without_high: _Side

    @classmethod
    def of(cls, values: Floats) -> WinsorizedSides:
        whole = _Side.of(values)
        middle = _median(values)
        reach = _OUTLIER * _NORMAL_MAD * _median(np.abs(values - middle))
        low = _Side.of(np.maximum(values, middle - reach)) if values.min() < middle - reach else whole
        high = _Side.of(np.minimum(values, middle + reach)) if values.max() > middle + reach else whole
        return cls(whole, low, high)


class _Contrast(NamedTuple):
    """The `difference` of two means, the `step` between the sides beside their common slope, the variance per block,
    and the numbers of blocks."""

    difference: float
    step: float
    variance: Variance
    before: int
    after: int

    @classmethod
    def of(cls, before: _Side, after: _Side, between: int) -> _Contrast:
        first, second = before.values, after.values
        difference = float(second.mean() - first.mean())
        step = difference - _slope(first, second) * ((len(first) + len(second)) / 2 + between)
        return cls(difference, step, _variance(before, after), len(first), len(second))

    @property
    def certain(self) -> float:
        """The size of the effect on which difference and step agree; 0 if their signs differ."""
        agree = self.difference * self.step > 0
        return min(abs(self.difference), abs(self.step)) if agree else 0.0

    def interval(self, alpha: float) -> Interval:
        half = bound(self.variance, self.before, self.after, alpha)
        low, high = sorted((self.difference, self.step))
        return Interval(self.difference, low - half, high + half)


def effect(before: Floats, after: Floats, alpha: float = ALPHA, between: int = 0, scale: Scale = unscaled) -> Interval:
    """Return the effect of a switch with an anytime-valid interval. Both arrays have one value per block; `between`
    counts the blocks of other settings between them.

    The interval covers the difference of the means and the step; it is infinite if a side is too short. It excludes 0
    only if the intervals of IN_A_ROW consecutive tests did. It is the intersection over all tests so far, and always
    includes the estimate.
    """
    *_, (_, last) = effect_over_time(before, after, alpha, between, scale)
    return last


def effect_over_time(
    before: Floats, after: Floats, alpha: float = ALPHA, between: int = 0, scale: Scale = unscaled
) -> Iterator[tuple[int, Interval]]:
    """Yield, for each test so far, the number of blocks after the switch and the effect."""
    return over_time(lambda number: single_test(before, after[:number], alpha, between, scale), len(after))


def over_time(test: Callable[[int], Interval], blocks: int) -> Iterator[tuple[int, Interval]]:
    """Yield, for each test, the number of blocks after the switch and the effect. `test` takes that number."""
    tests: deque[Interval] = deque(maxlen=IN_A_ROW)
    interval = Interval(0.0, -math.inf, math.inf)
    for number in _tested(blocks):
        tests.append(test(number))
        interval = _intersection(interval, _hull(tests))
        yield number, interval


def _tested(blocks: int) -> list[int]:
    numbers = range(LEAST, blocks + 1)
    return [number for number in numbers if number <= _EACH_BLOCK or not number % _COARSE] or [blocks]


def _intersection(known: Interval, now: Interval) -> Interval:
    """Return the intersection of both intervals with the newest estimate; the newest interval if they are disjoint."""
    low, high = max(known.low, now.low), min(known.high, now.high)
    if low > high:
        return now
    return Interval(now.estimate, min(low, now.estimate), max(high, now.estimate))


def _hull(tests: Sequence[Interval]) -> Interval:
    """Return the hull of the intervals of consecutive tests with the newest estimate. It includes 0 for fewer than
    IN_A_ROW."""
    early = [0.0] if len(tests) < IN_A_ROW else []
    low = min(*early, *(test.low for test in tests), math.inf)
    return Interval(tests[-1].estimate, low, max(*early, *(test.high for test in tests), -math.inf))


def tentative_effect(before: Floats, after: Floats, scale: Scale = unscaled) -> Interval:
    """Return the interval of a tentative estimate; it needs LEAST blocks before the switch and one after it.

    It is valid for a single test, and for the noise that batches of these blocks show: not enough for a verdict.
    """
    before, after = scale(before), scale(after)
    variance = long_run_variance(before, after)
    error = math.sqrt(variance.value * (1 / len(before) + 1 / len(after)))
    reach = student_quantile(1 - ALPHA / 2, variance.freedom)
    return Interval.around(float(after.mean() - before.mean()), reach * error)


@cached_by_value
def single_test(
    before: Floats, after: Floats, alpha: float = ALPHA, between: int = 0, scale: Scale = unscaled
) -> Interval:
    """Return the interval of a single test; see effect."""
    whole, up, down = _contrasts(_scaled_sides(before, scale), WinsorizedSides.of(scale(after)), between)
    if math.isnan(whole.difference):
        return Interval(0.0, -math.inf, math.inf)
    if min(whole.before, whole.after) < LEAST:
        return Interval(whole.difference, -math.inf, math.inf)
    low, high = whole.interval(alpha)[1:]
    return Interval(whole.difference, max(low, up.interval(alpha).low), min(high, down.interval(alpha).high))


@cached_by_value
def _scaled_sides(values: Floats, scale: Scale) -> WinsorizedSides:
    return WinsorizedSides.of(scale(values))


def _contrasts(before: WinsorizedSides, after: WinsorizedSides, between: int) -> tuple[_Contrast, _Contrast, _Contrast]:
    """Return the contrast of all blocks, the one without outliers that favour a rise, and the one without those that
    favour a fall."""
    whole = _Contrast.of(before.whole, after.whole, between)

    def without(first: _Side, second: _Side) -> _Contrast:
        same = first is before.whole and second is after.whole
        return whole if same else _Contrast.of(first, second, between)

    return whole, without(before.without_low, after.without_high), without(before.without_high, after.without_low)


def _slope(before: Floats, after: Floats) -> float:
    """Return the common slope of both sides, per block.

    A slope of the short time before alone, extrapolated over all the time after, would amplify noise.
    """
    times = [np.arange(len(side)) - (len(side) - 1) / 2 for side in (before, after)]
    rise = sum(float(time @ side) for time, side in zip(times, (before, after), strict=True))
    spans = sum(float(time @ time) for time in times)
    return rise / spans if spans else 0.0


def bound(variance: Variance, before: int, after: int, alpha: float = ALPHA) -> float:
    """Return the half width of the anytime-valid interval for these numbers of blocks."""
    if not variance.value:
        return 0.0
    half = mixture(variance.value, variance.value * (1 / before + 1 / after), alpha)
    return _DRIFT_ALLOWANCE + half * student_quantile(0.975, variance.freedom) / student_quantile(0.975, 1e6)


def mixture(block: float, error: float, alpha: float) -> float:
    """Return the half width of a normal mixture for a mean with the variance `error`; `block` is that of a block."""
    if not error:
        return 0.0
    prior = max(_PRIOR**2, _PRIOR_BLOCKS * block)
    return math.sqrt(error * (error + prior) / prior * (2 * math.log(1 / alpha) + math.log((error + prior) / error)))


def detectable(before: Floats, after: Floats, alpha: float = ALPHA, scale: Scale = unscaled) -> float:
    """Return the minimum detectable effect (power 80%), without drift."""
    variance = _variance(_Side.of(scale(before)), _Side.of(scale(after)))
    error = math.sqrt(variance.value * (1 / len(before) + 1 / len(after)))
    return bound(variance, len(before), len(after), alpha) + _POWER * error


def detectable_after(before: Floats, blocks: int, after: int, alpha: float = ALPHA, scale: Scale = unscaled) -> float:
    """Return the minimum detectable effect (power 80%) with `blocks` blocks before the switch and `after` blocks after
    it, without drift. The variance is that of `before` (LEAST blocks or more)."""
    own = _pooled(_Side.of(scale(before)))
    variance = own._replace(freedom=max(1, round(own.freedom * (blocks - 1) / (len(before) - 1))))
    error = math.sqrt(variance.value * (1 / blocks + 1 / after))
    return bound(variance, blocks, after, alpha) + _POWER * error


def long_run_variance(before: Floats, after: Floats) -> Variance:
    """Return the largest variance over batch lengths of one to six blocks, scaled to one block."""
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
    """Return the variance per block for the difference of the means. It is pooled over both sides, or estimated per
    side if that is larger, because many quiet blocks say nothing about the error of a few noisy ones."""
    pooled = _pooled(before, after)
    shares = [1 / len(side.values) for side in (before, after)]
    apart = sum(share * _pooled(side).value for share, side in zip(shares, (before, after), strict=True)) / sum(shares)
    return pooled._replace(value=max(pooled.value, apart))


def blocks_needed(
    before: Floats, after: Floats, least: float, alpha: float = ALPHA, between: int = 0, scale: Scale = unscaled
) -> int | None:
    """Return the number of blocks after the switch at which the effect would exceed its bound, if effect and noise stay
    the same; an effect below `least` counts as `least`. None: the time before is too short."""
    whole, up, down = _contrasts(WinsorizedSides.of(scale(before)), WinsorizedSides.of(scale(after)), between)
    robust = up if whole.difference > 0 else down
    candidates = [(whole.variance, max(least, whole.certain))]
    if robust.difference * whole.difference > 0:
        candidates.append((robust.variance, robust.certain))
    for number in range(max(LEAST + IN_A_ROW - 1, len(after) + 1), 2001):
        if any(bound(variance, len(before), number, alpha) < size for variance, size in candidates):
            return number
    return None


def _batches(values: Floats, length: int) -> Floats:
    """Return the means of batches; surplus blocks are left out at the beginning."""
    number = len(values) // length
    means: Floats = np.add.reduce(values[len(values) - number * length :].reshape(number, length), axis=1) / length
    return means


def _median(values: Floats) -> float:
    """Return the median; np.median takes five times as long for a few values."""
    ordered = np.sort(values)
    return float(ordered[(len(ordered) - 1) // 2] + ordered[len(ordered) // 2]) / 2


def _squares(values: Floats) -> tuple[float, int]:
    """Return the sum of squared deviations from the mean, and its degrees of freedom. It uses `reduce`, because mean()
    takes five times as long for a few values."""
    apart = values - np.add.reduce(values) / len(values)
    return float(np.add.reduce(apart * apart)), len(values) - 1
