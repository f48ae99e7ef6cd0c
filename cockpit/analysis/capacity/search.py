"""Search for the capacity: the highest arrival rate that holds limits. Pure: levels so far -> next step or end.

Coarse doubling finds a first level that fails. From then on the capacity has a posterior distribution. The number of
exceeding requests of a level has a negative binomial distribution, because they come in bursts. The logarithm of its
mean is a straight line over the logarithm of the rate, never below a floor, that crosses the allowed number at the
capacity. Slope, floor and size of bursts are unknown; one level in a hundred may be an outlier. Levels are placed at
quantiles of the distribution: that is bisection if the metric has a step, and regression if it rises slowly.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from cockpit.analysis.capacity.levels import Level
from cockpit.analysis.intervals import Floats
from cockpit.model.capacity import CapacityOutcome

# Seconds of a search; of a coarse level and of a level near the capacity, at least and at most.
LONGEST, COARSE, FINE = 180.0, (2.0, 5.0), (10.0, 20.0)
# First rate of a search if the load has none; a search does not go below the lowest rate or above the highest.
START, LOWEST, HIGHEST = 50.0, 1.0, 1e6
# The search ends if the upper end of the interval is at most this multiple of the lower end.
NARROW = 1.06
# Levels are coarse while the 50% interval is wider than this multiple, and near within it.
_WIDE = 1.15
# Near levels on each side of the capacity before the search ends.
_EACH_SIDE = 2
# If the generator is the bottleneck, the search ends at this share of the lowest rate that it cannot send.
_NEAR_CEILING = 0.85
# Expected number of requests that exceed a limit, at the limit, in a level near the capacity.
_EXCEEDING = 10
# Slopes and floors of the score, and numbers of bursts in 10 s.
_SLOPES = np.array([3.0, 8.0, 20.0, 50.0, 150.0, 600.0]).reshape(-1, 1, 1, 1)
_FLOORS = np.array([-0.1, -0.3, -0.7, -10.0]).reshape(1, -1, 1, 1)
_BURSTS = (0.3, 1.0, 3.0, 10.0, 100.0)
# Weight of each level, below 1 because the model is not exact and levels are placed where they were expected to be
# useful: calibrated by simulation, so that 95% intervals cover the capacity.
_TRUST = 0.7
# Share of outliers.
_OUTLIERS = 0.01
_POINTS = 200


class Step(NamedTuple):
    """The next level: `rate`, seconds until the measurement, and measured seconds."""

    rate: float
    settle: float
    seconds: float


class CapacityEstimate(NamedTuple):
    """The capacity (arrivals/s) with its 95% interval, and the ends of its 50% interval."""

    rate: float
    low: float
    high: float
    first: float
    third: float


class Aim(NamedTuple):
    """Constants of a search. `start`: first rate; `share`: smallest allowed share of requests, 1 if there is none;
    `settle`: seconds before each measurement."""

    start: float = START
    share: float = 1.0
    settle: float = 1.0
    longest: float = LONGEST


def next_step(levels: Sequence[Level], aim: Aim, spent: float) -> Step | CapacityOutcome:
    """Return the next level, or why the search ends after `spent` seconds."""
    shown = _usable(levels)
    ceiling = _ceiling(levels)
    estimate = capacity(levels)
    if estimate is not None and _is_settled(shown, estimate):
        return "found"
    rate = _next_rate(shown, estimate, ceiling, aim)
    if rate is None:
        return "generator" if ceiling < HIGHEST else "lowest"
    if rate >= ceiling:
        return "generator"
    shortest, longest = COARSE if estimate is None or estimate.third > _WIDE * estimate.first else FINE
    seconds = min(longest, max(shortest, _EXCEEDING / aim.share / rate), aim.longest - spent - aim.settle)
    if seconds < shortest:
        return "found" if estimate is not None else "budget"
    return Step(rate, aim.settle, seconds)


def capacity(levels: Sequence[Level]) -> CapacityEstimate | None:
    """Return the capacity; None before a level held the limits and another failed."""
    shown = _usable(levels)
    if not any(level.clearly_failed for level in shown) or all(level.score > 0 for level in shown):
        return None
    return CapacityEstimate(*map(math.exp, _quantiles(shown, (0.5, 0.025, 0.975, 0.25, 0.75))))


def at_least(levels: Sequence[Level]) -> float:
    """Return the highest rate that held the limits; 0 if none did."""
    return max((level.rate for level in _usable(levels) if level.holds), default=0.0)


def _usable(levels: Sequence[Level]) -> list[Level]:
    return [level for level in levels if not level.saturated]


def _ceiling(levels: Sequence[Level]) -> float:
    """Return the lowest rate that the generator cannot send; one such level may be a disturbance."""
    sent = max((level.rate for level in _usable(levels)), default=0.0)
    beyond = [level.rate for level in levels if level.limited and level.rate > sent]
    return min(beyond) if len(beyond) > 1 else HIGHEST


def _is_settled(shown: Sequence[Level], estimate: CapacityEstimate) -> bool:
    near = [level for level in shown if estimate.low / _WIDE < level.rate < estimate.high * _WIDE]
    failed = sum(level.score > 0 for level in near)
    return estimate.high <= NARROW * estimate.low and min(failed, len(near) - failed) >= _EACH_SIDE


def _next_rate(shown: Sequence[Level], estimate: CapacityEstimate | None, ceiling: float, aim: Aim) -> float | None:
    """Return the next rate; None: no further rate is useful."""
    if estimate is not None:
        return _rounded((estimate.rate, estimate.first, estimate.third)[len(shown) % 3])
    if any(level.clearly_failed for level in shown):
        lowest = min(level.rate for level in shown)
        return None if lowest <= LOWEST else max(LOWEST, _rounded(lowest / 4))
    highest = max((level.rate for level in shown), default=0.0)
    rate = 2 * highest or min(aim.start, ceiling / 2)
    if rate >= ceiling:
        rate = math.sqrt(highest * ceiling)
        return None if not highest or highest >= _NEAR_CEILING * ceiling else _rounded(rate)
    return rate


def _rounded(rate: float) -> float:
    return float(f"{rate:.4g}")


def _quantiles(shown: Sequence[Level], at: Sequence[float]) -> list[float]:
    """Return quantiles of the posterior distribution of the logarithm of the capacity."""
    rates = [level.rate for level in shown]
    low, high = math.log(min(rates) / 2), math.log(2 * max(rates))
    low, high = _interpolated(shown, low, high, (0.0005, 0.9995))
    return _interpolated(shown, low - 0.02, high + 0.02, at)


def _interpolated(levels: Sequence[Level], low: float, high: float, at: Sequence[float]) -> list[float]:
    points = np.linspace(low, high, _POINTS)
    weights = np.cumsum(_posterior(levels, points))
    return [float(np.interp(quantile, weights / weights[-1], points)) for quantile in at]


def _posterior(levels: Sequence[Level], points: Floats) -> Floats:
    """Return the probability of each point (logarithm of a rate) up to a factor, over slopes, floors and bursts."""
    total = np.zeros((_SLOPES.size, _FLOORS.size, len(_BURSTS), len(points)))
    for level in levels:
        # At the highest score each request exceeds the limit.
        top = -math.log(level.share)
        scores = np.clip(np.maximum(_SLOPES * (math.log(level.rate) - points), _FLOORS), -20, top)
        outlier = math.log(_OUTLIERS / (level.exceeding + 1) / math.log(level.exceeding + level.allowed + 3))
        for at, bursts in enumerate(_BURSTS):
            likely = _negative_binomial(level, (level.allowed * np.exp(scores))[:, :, 0], bursts * level.seconds / 10)
            total[:, :, at] += np.logaddexp(likely + math.log1p(-_OUTLIERS), outlier)
    total *= _TRUST
    weights: Floats = np.exp(total - total.max()).sum(axis=(0, 1, 2))
    return weights


def _negative_binomial(level: Level, mean: Floats, shape: float) -> Floats:
    """Return the logarithm of the probability of a level's exceeding requests."""
    count = level.exceeding
    constant = math.lgamma(count + shape) - math.lgamma(shape) - math.lgamma(count + 1) + shape * math.log(shape)
    likely: Floats = constant + count * np.log(mean) - (count + shape) * np.log(mean + shape)
    return likely
