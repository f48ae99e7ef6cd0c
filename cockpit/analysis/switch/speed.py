"""The effect of one change under load, adjusted for the CPU speed of the blocks.

The slope of a metric on CPU speed (0: independent, 1: proportional) is estimated within the sides, never across the
switch, and only as a confidence set. The interval of the effect is the union over all slopes in the set, so that an
effect is called only if it exists for each of them. Blocks with a nearly constant speed carry no information about the
slope, but then it matters only if the speed differs between the sides. Errors of the probe's readings bias slopes
towards 0: the upper end of the set allows for that.

A setting that itself changes CPU speed would lose its effect. If the sides differ in speed by more than
_MAX_STANDARD_ERRORS, the set includes the slope 0, so that an effect must also exist without adjustment.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from cockpit.analysis.cache import cached_by_value
from cockpit.analysis.intervals import ALPHA, Floats, Interval, student_quantile
from cockpit.analysis.switch import switch

# Alpha of the confidence set of slopes, and the largest difference of mean speeds (standard errors) that is chance.
_SLOPE_ALPHA = 0.05
_MAX_STANDARD_ERRORS = 4.0
# Slopes are rounded to 1 / _STEPS.
_STEPS = 50
# Standard errors of speeds are rounded up to 1 / _ERROR_STEPS.
_ERROR_STEPS = 1000
# Blocks in the longest batch of scores (30 s), and minimum batches for a variance.
_LONGEST = 6
_LEAST_BATCHES = 3
# Minimum share of a side's blocks with a known speed; the speed of the others is interpolated.
_KNOWN = 0.75


class SwitchBlocks(NamedTuple):
    """Values of both sides, one per block, oldest first, and log CPU speeds relative to the mean before the switch,
    signed so that the values rise with them. `error` is the standard error of one speed. Without speeds both speed
    arrays are empty."""

    before: Floats
    after: Floats
    before_speeds: Floats = np.array([])
    after_speeds: Floats = np.array([])
    error: float = 0.0

    @property
    def is_adjusted(self) -> bool:
        return len(self.before_speeds) > 0

    def first(self, number: int) -> SwitchBlocks:
        """Return the blocks with only the first `number` after the switch."""
        return self._replace(after=self.after[:number], after_speeds=self.after_speeds[:number])

    def at(self, slope: float) -> SwitchBlocks:
        """Return the values adjusted to the mean speed before the switch by this slope, without speeds."""
        if not self.is_adjusted:
            return self
        return SwitchBlocks(
            self.before * np.exp(-slope * self.before_speeds), self.after * np.exp(-slope * self.after_speeds)
        )

    @property
    def shift(self) -> float:
        """The difference between the mean speeds of the sides."""
        return float(self.after_speeds.mean() - self.before_speeds.mean()) if self.is_adjusted else 0.0


class Slopes(NamedTuple):
    """Confidence set of slopes, and the most likely slope."""

    low: float
    likely: float
    high: float

    @property
    def bounds(self) -> tuple[float, ...]:
        """The ends of the set, rounded outwards. They have the extreme intervals, because the effect is linear in the
        slope and half widths are convex."""
        low, high = math.floor(self.low * _STEPS) / _STEPS, math.ceil(self.high * _STEPS) / _STEPS
        return (low,) if low == high else (low, high)


def with_speeds(before: Floats, after: Floats, speeds: tuple[Floats, Floats], error: float, sign: int) -> SwitchBlocks:
    """Return the blocks with their log `speeds` (nan: unknown) of this standard error; without speeds if too few are
    known, or if a value is below 0. `sign`: 1 if the values rise with the speed, -1 if they fall."""
    plain = SwitchBlocks(before, after)
    for values, known in zip((before, after), speeds, strict=True):
        if len(values) != len(known) or np.isfinite(known).sum() < max(1.0, _KNOWN * len(known)) or values.min() < 0:
            return plain
    first, second = (_interpolated(known) for known in speeds)
    middle = float(first.mean())
    return SwitchBlocks(before, after, sign * (first - middle), sign * (second - middle), error)


def reading_error(sides: Sequence[Floats], per_block: float) -> float:
    """Return the standard error of the mean of `per_block` consecutive readings (logarithms). It is an upper bound,
    because the speed itself also differs between consecutive readings. Infinite for fewer than two readings. It is
    rounded up, so that a few more readings rarely change it and the results of earlier tests stay valid."""
    steps = np.concatenate([np.diff(side) for side in sides])
    if not len(steps):
        return math.inf
    return math.ceil(_ERROR_STEPS * math.sqrt(float((steps**2).mean()) / 2 / per_block)) / _ERROR_STEPS


def _interpolated(speeds: Floats) -> Floats:
    known = np.isfinite(speeds)
    if known.all():
        return speeds
    places = np.arange(len(speeds))
    return np.asarray(np.interp(places, places[known], speeds[known]))


def effect(
    blocks: SwitchBlocks, alpha: float = ALPHA, between: int = 0, scale: switch.Scale = switch.unscaled
) -> Interval:
    """Return the effect of a switch; see `switch.effect`."""
    *_, (_, last) = effect_over_time(blocks, alpha, between, scale)
    return last


def effect_over_time(
    blocks: SwitchBlocks, alpha: float = ALPHA, between: int = 0, scale: switch.Scale = switch.unscaled
) -> Iterator[tuple[int, Interval]]:
    """Yield the effect at each test; see `switch.effect_over_time`."""
    if not blocks.is_adjusted:
        return switch.effect_over_time(blocks.before, blocks.after, alpha, between, scale)

    def test(number: int) -> Interval:
        return _single_test(*blocks.first(number), alpha, between, scale)

    return switch.over_time(test, len(blocks.after))


@cached_by_value
def _single_test(
    before: Floats,
    after: Floats,
    before_speeds: Floats,
    after_speeds: Floats,
    error: float,
    alpha: float,
    between: int,
    scale: switch.Scale,
) -> Interval:
    """Return the union of the intervals over the set of slopes."""
    blocks = SwitchBlocks(before, after, before_speeds, after_speeds, error)
    allowed = slopes(blocks, scale)
    tests = [switch.single_test(*blocks.at(slope)[:2], alpha, between, scale) for slope in allowed.bounds]
    middle = _change(blocks, allowed.likely, scale)
    low, high = min(test.low for test in tests), max(test.high for test in tests)
    return Interval(middle, min(low, middle), max(high, middle))


def _change(blocks: SwitchBlocks, slope: float, scale: switch.Scale) -> float:
    adjusted = blocks.at(slope)
    change = float(scale(adjusted.after).mean() - scale(adjusted.before).mean())
    return 0.0 if math.isnan(change) else change


def slopes(blocks: SwitchBlocks, scale: switch.Scale = switch.unscaled) -> Slopes:
    """Return the confidence set of slopes within 0 to 1; all of that range if the set is empty, 0 without speeds."""
    if not blocks.is_adjusted:
        return Slopes(0.0, 0.0, 0.0)
    values = [scale(side) for side in blocks[:2]]
    speeds = [side - side.mean() for side in blocks[2:4]]
    apart = [side - side.mean() for side in values]
    squares = sum(float(side @ side) for side in speeds)
    whole = Slopes(0.0, 0.5, 1.0)
    if not squares or any(np.isnan(side).any() for side in apart):
        return whole
    slope = sum(float(first @ second) for first, second in zip(speeds, apart, strict=True)) / squares
    scores = [speed * (value - slope * speed) for speed, value in zip(speeds, apart, strict=True)]
    reach = _reach(scores) / squares
    freedom = max(1, len(values[0]) + len(values[1]) - 2)
    # Two standard errors of the ratio of the variances.
    noise = blocks.error**2 * (1 + 2 * math.sqrt(3 / freedom))
    reliability = 1 - noise * freedom / squares
    low, high = max(0.0, slope - reach), 1.0
    if reliability > 0:
        high = min(high, (slope + reach) / reliability)
    if low > high:
        return whole
    likely = min(max(slope, low), high)
    return Slopes(0.0, likely, high) if _is_shifted(blocks) else Slopes(low, likely, high)


def _reach(scores: list[Floats]) -> float:
    """Return the half width of the sum of scores, by the batch length with the largest variance: noise and speed are
    both autocorrelated."""
    number = sum(len(side) for side in scores)
    freedom = number - len(scores) - 1
    if freedom < _LEAST_BATCHES:
        return math.inf
    largest, batches = 0.0, freedom
    for length in range(1, _LONGEST + 1):
        sums = np.concatenate([_sums(side, length) for side in scores if len(side) >= length])
        if len(sums) < _LEAST_BATCHES + 1:
            break
        value = float(sums @ sums) * number / (len(sums) * length) * number / freedom
        if value > largest:
            largest, batches = value, min(freedom, len(sums) - 1)
    return student_quantile(1 - _SLOPE_ALPHA / 2, batches) * math.sqrt(largest)


def _sums(values: Floats, length: int) -> Floats:
    number = len(values) // length
    sums: Floats = np.add.reduce(values[len(values) - number * length :].reshape(number, length), axis=1)
    return sums


def _is_shifted(blocks: SwitchBlocks) -> bool:
    """Return whether the mean speeds of the sides differ by more than chance."""
    first, second = blocks.before_speeds, blocks.after_speeds
    variance = switch.long_run_variance(first, second).value
    return abs(blocks.shift) > _MAX_STANDARD_ERRORS * math.sqrt(variance * (1 / len(first) + 1 / len(second)))
