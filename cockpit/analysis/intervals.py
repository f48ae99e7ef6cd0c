"""Confidence intervals of an effect from independent replications: few runs, rounds of a study, rounds without a
planned end.

Values are logarithms of a metric, so that an effect is a ratio; metrics that can be 0 keep their own scale. There is
one value per run or round. Seconds or blocks within a run are not replications of a change, because a restart shifts
all of them.

References: Smyth 2004 (variance moderated by a pooled variance), Pocock 1977 (the same level at each interim test), Lan
and DeMets 1983 (alpha spending), Wang and Ramdas 2024 (anytime-valid t-tests), Fisher 1932 (analysis of covariance).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

ALPHA = 0.05
POWER = 0.8
# Rounds before the first test of a sequential study.
FIRST_TEST = 4
# Prior variance of the effect in units of the noise variance: best for effects of about half a standard deviation.
_PRIOR = 0.3

# Nominal level of the t-tests after each round from the 4th, for a risk of ALPHA / m over all tests: rows by the
# maximum number of rounds, columns by m (_COMPARISONS). From 400,000 simulated studies each; the tests repeat the
# simulation.
_COMPARISONS = (1, 2, 3, 4, 5, 6, 7, 8, 10)
_NOMINAL = {
    4: (0.05, 0.025, 0.0167, 0.0125, 0.01, 0.00833, 0.00714, 0.00625, 0.005),
    6: (0.0252, 0.0118, 0.00769, 0.00567, 0.00448, 0.0037, 0.00314, 0.00277, 0.00221),
    8: (0.0181, 0.00835, 0.00537, 0.00394, 0.0031, 0.00252, 0.00217, 0.00187, 0.00151),
    12: (0.0126, 0.00579, 0.00368, 0.00266, 0.00206, 0.0017, 0.00143, 0.00123, 0.00097),
    16: (0.0101, 0.00456, 0.00289, 0.00208, 0.00164, 0.00134, 0.00114, 0.00098, 0.00076),
    24: (0.00795, 0.00354, 0.00222, 0.0016, 0.00125, 0.00101, 0.00085, 0.00073, 0.00058),
    32: (0.00677, 0.00301, 0.0019, 0.00135, 0.00106, 0.00086, 0.00072, 0.00063, 0.00048),
    50: (0.00548, 0.00245, 0.00156, 0.00111, 0.00087, 0.0007, 0.00059, 0.00051, 0.00039),
}
# Minimum degrees of freedom left after the adjustment for CPU speed.
_LEAST_FREEDOM = 2
# Maximum difference of mean CPU speed between two settings, in standard errors. A larger difference is not chance: the
# setting itself changes CPU speed, and an adjustment would remove its effect.
_MAX_STANDARD_ERRORS = 4.0
# Factor for the level of adjusted tests: the slope differs between tests, so that they are less correlated. From
# simulations, which the tests repeat.
_ADJUSTED_LEVEL = 0.85
# Exponent for an alpha below the table: the nominal level falls faster than the risk.
_LEVEL_EXPONENT = 1.09
# Repeated tests, one after each further run: the share of the risk at the first test (2 vs 2), and the power by which
# the level falls with the number of tests. From simulations, which the tests repeat.
_FIRST_SHARE = 0.6
_LEVEL_DECAY = 0.7


class Interval(NamedTuple):
    """An effect with its confidence interval. The ends are infinite if there are too few values."""

    estimate: float
    low: float
    high: float

    @classmethod
    def around(cls, estimate: float, half: float) -> Interval:
        return cls(estimate, estimate - half, estimate + half)

    def as_shares(self) -> Interval:
        """Return an interval of log ratios as shares."""
        return Interval(*(math.expm1(min(value, 700.0)) for value in self))

    def at_least(self, half: float) -> Interval:
        """Return the interval, widened to at least `half` on both sides of the estimate."""
        return Interval(self.estimate, min(self.low, self.estimate - half), max(self.high, self.estimate + half))

    @property
    def tentative(self) -> Interval:
        """The interval of a tentative estimate: half as wide."""
        return Interval.around(self.estimate, (self.high - self.low) / 4)


class Estimate(NamedTuple):
    """The mean of differences, its standard `error`, the standard `deviation` of a single difference, and the degrees
    of freedom. `adjusted`: for CPU speed."""

    mean: float
    error: float
    deviation: float
    freedom: float
    adjusted: bool = False


class Speeds(NamedTuple):
    """Log ratios of CPU speeds, one per round of a comparison; empty: unknown.

    `others` are the differences and speeds, one per round, of the study's other comparisons in the same metric. The
    slope of the metric on CPU speed is estimated from all comparisons.
    """

    own: Floats = np.array([])
    others: Sequence[tuple[Floats, Floats]] = ()

    def first(self, rounds: int) -> Speeds:
        return Speeds(self.own[:rounds], [(first[:rounds], second[:rounds]) for first, second in self.others])


UNKNOWN = Speeds()


class PooledVariance(NamedTuple):
    """The variance within cells, pooled over the cells of a study: `variance` with `freedom` degrees of freedom."""

    variance: float
    freedom: int

    @classmethod
    def of(cls, cells: Iterable[Floats]) -> PooledVariance:
        """Pool cells, each an array of one value per run; a cell of one run adds nothing."""
        known = [cell for cell in cells if len(cell) > 1]
        freedom = sum(len(cell) - 1 for cell in known)
        squares = sum(float(((cell - cell.mean()) ** 2).sum()) for cell in known)
        return cls(squares / freedom if freedom else 0.0, freedom)


def few_runs(before: Floats, after: Floats, others: PooledVariance, alpha: float = ALPHA) -> Interval:
    """Return the interval of a difference between two cells of few runs each; see `estimate_of_runs`."""
    estimated = estimate_of_runs(before, after, others)
    if not estimated.freedom:
        return Interval.around(estimated.mean, math.inf)
    reach = student_quantile(1 - alpha / 2, round(estimated.freedom, 2)) if estimated.error else 0.0
    return Interval.around(estimated.mean, reach * estimated.error)


def estimate_of_runs(before: Floats, after: Floats, others: PooledVariance) -> Estimate:
    """Estimate the difference between two cells of few runs each, with variances moderated by `others`. There are no
    degrees of freedom if a cell has a single run and `others` is empty.

    The variance of a cell is a weighted mean of its own and the pooled variance. The pooled variance counts for two
    degrees of freedom if it has at least 8 itself, else for one. Without others, the variance of the smaller cell is at
    least the variance pooled over both cells, because few runs may agree by chance.
    """
    mean = float(after.mean() - before.mean())
    prior = min(others.freedom, 2 if others.freedom >= 8 else 1)
    both = PooledVariance.of((before, after)).variance
    parts, slack = [], 0.0
    for cell, across in ((before, after), (after, before)):
        freedom = prior + len(cell) - 1
        if not freedom:
            return Estimate(mean, math.inf, math.inf, 0)
        squares = float(((cell - cell.mean()) ** 2).sum())
        variance = (prior * others.variance + squares) / freedom
        part = max(variance, both if not prior and len(cell) < len(across) else 0.0) / len(cell)
        parts.append(part)
        slack += part**2 / freedom
    error = math.sqrt(sum(parts))
    return Estimate(mean, error, math.sqrt(both), sum(parts) ** 2 / slack if slack else 1.0)


def repeated_level(runs: int, alpha: float = ALPHA) -> float:
    """Return the level of the test after `runs` runs in total (4 or more). Over all tests, at 2 vs 2 runs and after
    each further run, the risk is `alpha` (alpha spending)."""
    return alpha * _FIRST_SHARE * math.pow(max(1, runs - 3), -_LEVEL_DECAY)


def nominal_level(rounds: int, alpha: float = ALPHA) -> float:
    """Return the nominal level of each t-test in a study of at most `rounds` rounds (4 to 50), for a risk of `alpha`
    over all tests. Below ALPHA / 10 it follows a power law, verified by simulation down to ALPHA / 80."""
    budgets = sorted(_NOMINAL)
    levels = [ALPHA / number for number in _COMPARISONS][::-1]
    log_alpha = math.log(max(alpha, levels[0]))
    by_budget = [np.interp(log_alpha, np.log(levels), np.log(_NOMINAL[budget][::-1])) for budget in budgets]
    level = math.exp(np.interp(math.log(rounds), np.log(budgets), by_budget))
    return float(level * min(1.0, alpha / levels[0]) ** _LEVEL_EXPONENT)


def sequential(differences: Floats, budget: int, alpha: float = ALPHA, speeds: Speeds = UNKNOWN) -> Interval:
    """Return the interval of a study of at most `budget` rounds, tested after each round from the 4th.

    `differences` has one value per round, oldest first; `speeds` are the CPU speeds. The interval is the intersection
    over all tests, so that a conclusion is never lost. It is infinite before the first test. If the intersection is
    empty, the effect changed during the study, and the interval spans those of all tests.
    """
    number = len(differences)
    mean = estimate(differences, speeds).mean
    level = nominal_level(max(budget, number, FIRST_TEST), alpha)
    tests = []
    for rounds in range(FIRST_TEST, number + 1):
        seen = estimate(differences[:rounds], speeds.first(rounds))
        risk = level * _ADJUSTED_LEVEL if seen.adjusted else level
        half = student_quantile(1 - risk / 2, round(seen.freedom, 2)) * seen.error
        tests.append(Interval.around(seen.mean, half))
    if not tests:
        return Interval(mean, -math.inf, math.inf)
    low, high = max(test.low for test in tests), min(test.high for test in tests)
    if low > high:
        return Interval(mean, min(test.low for test in tests), max(test.high for test in tests))
    return Interval(min(max(mean, low), high), low, high)


def estimate(differences: Floats, speeds: Speeds = UNKNOWN) -> Estimate:
    """Estimate the mean of at least 2 differences, adjusted for CPU speed if it is known."""
    plain = _unadjusted(differences)
    if len(speeds.own) != len(differences):
        return plain
    number, mean_speed = len(differences), float(speeds.own.mean())
    deviation = float(speeds.own.std(ddof=1))
    if not deviation or abs(mean_speed) > _MAX_STANDARD_ERRORS * deviation / math.sqrt(number):
        return plain
    slope = _slope(differences, speeds)
    freedom = number - 1 - slope.spent
    if freedom < _LEAST_FREEDOM:
        return plain
    rest = differences - slope.value * speeds.own
    variance = float(((rest - rest.mean()) ** 2).sum()) / freedom
    error = math.sqrt(variance * (1 / number + mean_speed**2 * slope.variance))
    return Estimate(float(rest.mean()), error, math.sqrt(variance), freedom, True)


def _unadjusted(differences: Floats) -> Estimate:
    number = len(differences)
    deviation = float(differences.std(ddof=1))
    return Estimate(float(differences.mean()), deviation / math.sqrt(number), deviation, number - 1)


class _Slope(NamedTuple):
    """The slope of differences on CPU speed: its `value`, its `variance` in units of the variance of a difference, and
    the degrees of freedom of the comparison `spent` on its estimate."""

    value: float
    variance: float
    spent: float


def _slope(differences: Floats, speeds: Speeds) -> _Slope:
    """Fit the slope over all comparisons by least squares, with a separate mean for each.

    The comparisons share the first setting's values, so that the noise of any two has a correlation of one half.
    """
    parts = [(differences, speeds.own), *(part for part in speeds.others if len(part[0]) == len(part[1]) > 1)]
    rounds = max(len(values) for values, _ in parts)
    apart = np.array([np.pad(speed - speed.mean(), (0, rounds - len(speed))) for _, speed in parts])
    values = np.array([np.pad(value - value.mean(), (0, rounds - len(value))) for value, _ in parts])
    products = apart @ apart.T
    shared = (np.eye(len(parts)) + 1) / 2
    total = float(np.trace(products))
    variance = float((shared * products).sum()) / total**2
    spent = 2 * float((shared[0] * products[0]).sum()) / total - float(products[0, 0]) * variance
    return _Slope(float((apart * values).sum()) / total, variance, spent)


def anytime(differences: Floats, alpha: float = ALPHA, speeds: Speeds = UNKNOWN) -> Interval:
    """Return an anytime-valid interval: it holds over any number of tests, however many rounds follow."""
    if len(differences) < 2:
        return Interval.around(float(differences.mean()), math.inf)
    interval = estimate(differences, speeds)
    # The effective number of rounds follows from the degrees of freedom that are left.
    reach = anytime_reach(interval.freedom + 1, alpha)
    return Interval.around(interval.mean, reach * math.sqrt(len(differences)) * interval.error)


def anytime_reach(number: float, alpha: float = ALPHA) -> float:
    """Return the half width of `anytime` in standard deviations of one round; infinite for too few rounds."""
    ratio = _PRIOR / (number + _PRIOR)
    bound = (1 / (alpha * math.sqrt(ratio))) ** (2 / number)
    if number < 2 or bound * ratio >= 1:
        return math.inf
    return math.sqrt((number - 1) * (bound - 1) / (1 - bound * ratio) / number)


def anytime_detectable(deviation: float, number: int, alpha: float = ALPHA) -> float:
    """Return the minimum detectable effect of `anytime` after `number` rounds, with a power of POWER."""
    return deviation * (anytime_reach(number, alpha) + student_quantile(POWER, number - 1) / math.sqrt(number))


def minimum_detectable(deviation: float, rounds: int, alpha: float = ALPHA) -> float:
    """Return the minimum detectable effect of a study of `rounds` rounds with a power of POWER. `deviation` is the
    standard deviation of one round's difference."""
    freedom = rounds - 1
    level = nominal_level(rounds, alpha)
    reach = student_quantile(1 - level / 2, freedom) + student_quantile(POWER, freedom)
    return reach * deviation / math.sqrt(rounds)


def student_cdf(t: float, freedom: float) -> float:
    """Return the probability that Student's t is below `t` (0 or above), by Simpson's rule over the angle.

    With t = sqrt(freedom) * tan(angle) the density is a power of a cosine.
    """
    scale = math.exp(math.lgamma((freedom + 1) / 2) - math.lgamma(freedom / 2)) / math.sqrt(math.pi)
    angles = np.linspace(0.0, math.atan(t / math.sqrt(freedom)), 401)
    heights = np.cos(angles) ** (freedom - 1)
    area = (heights[0] + heights[-1] + 4 * heights[1::2].sum() + 2 * heights[2:-1:2].sum()) * angles[1] / 3
    return min(1.0, 0.5 + scale * float(area))


@lru_cache(maxsize=4096)
def student_quantile(probability: float, freedom: float) -> float:
    """Return the quantile of Student's t at a probability above one half."""
    low, high = 0.0, 1.0
    while student_cdf(high, freedom) < probability and high < 1e9:
        high *= 2
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (middle, high) if student_cdf(middle, freedom) < probability else (low, middle)
    return (low + high) / 2
