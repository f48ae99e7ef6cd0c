"""The mean of paired differences while their number grows: an anytime-valid interval that respects autocorrelation.

Each difference is between two variants in the same block of time, so that what disturbs both cancels out. Blocks are
not independent: the variance is that of long batches, as for one switch under load (see `switch`).
"""

from __future__ import annotations

import math

from cockpit.analysis.cache import cached_by_value
from cockpit.analysis.intervals import ALPHA, Floats, Interval, student_quantile
from cockpit.analysis.switch.switch import IN_A_ROW, LEAST, Variance, long_run_variance, mixture, over_time

# Normal quantile of a power of 80%.
_POWER = 0.84
# Allowance (log scale) for slow changes of the ratio that the time so far does not show.
_ALLOWANCE = 0.005
# Limit of the coefficient of the autoregression.
_STEEPEST = 0.95


def effect(differences: Floats, alpha: float = ALPHA) -> Interval:
    """Return the mean of the differences with an anytime-valid interval: the intersection over all tests so far. It is
    infinite for fewer than LEAST blocks, and excludes 0 only if the intervals of consecutive tests did."""
    *_, (_, last) = over_time(lambda number: _single_test(differences[:number], alpha), len(differences))
    return last


@cached_by_value
def _single_test(differences: Floats, alpha: float) -> Interval:
    if len(differences) < LEAST:
        return Interval(float(differences.mean()), -math.inf, math.inf)
    return Interval.around(float(differences.mean()), _half_width(_variance(differences), len(differences), alpha))


def detectable(differences: Floats, alpha: float = ALPHA, blocks: int | None = None) -> float:
    """Return the minimum detectable effect (power 80%) after this number of blocks (default: those so far)."""
    number = blocks or len(differences)
    error = math.sqrt(_variance(differences).value / number)
    return _half_width(_variance(differences), number, alpha) + _POWER * error


def blocks_needed(differences: Floats, least: float, alpha: float = ALPHA) -> int | None:
    """Return the number of blocks at which the effect would exceed its bound, if effect and noise stay the same; an
    effect below `least` counts as `least`. None: more than 2,000."""
    size, variance = max(least, abs(float(differences.mean()))), _variance(differences)
    numbers = range(max(LEAST + IN_A_ROW - 1, len(differences) + 1), 2001)
    return next((number for number in numbers if _half_width(variance, number, alpha) < size), None)


def _half_width(variance: Variance, blocks: int, alpha: float) -> float:
    reach = student_quantile(0.975, variance.freedom) / student_quantile(0.975, 1e6)
    return _ALLOWANCE + mixture(variance.value, variance.value / blocks, alpha) * reach


def _variance(differences: Floats) -> Variance:
    """Return the long-run variance per block: the larger one of that of batches and that of an autoregression, whose
    coefficient is corrected for the bias of short series (Kendall 1954)."""
    batches = long_run_variance(differences, differences[:0])
    apart = differences - differences.mean()
    squares = float(apart @ apart)
    if not squares:
        return batches
    number = len(differences)
    slope = float(apart[1:] @ apart[:-1]) / squares
    slope = min(max(slope + (1 + 3 * slope) / number, 0.0), _STEEPEST)
    value = squares / (number - 1) * (1 + slope) / (1 - slope)
    return batches._replace(value=max(batches.value, value))
