"""The ratio of a metric to its baseline, with an interval that allows for the spread between runs.

Baseline and check share one variance, which their runs estimate together. With one run each nothing shows the spread,
so one is assumed, as for verdicts on one run each.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from statistics import NormalDist

import msgspec
import numpy as np

from cockpit.analysis.student import Floats, student_quantile

# Confidence of the interval: a threshold fails wrongly in 2.5% of the checks at most, and passes wrongly as seldom.
LEVEL = 0.95
# By how much (deviation, log scale) two runs of the same settings are assumed to differ when each was run once: the
# tail of latencies and the churn of processes, and any other metric.
_WIDE, _NARROW = 0.4, 0.15
_WIDELY_SPREAD = re.compile(r"(?:.*\.)?(?:p9[5-9](?:[._]\d+)?|p100|max|processes\.births_per_s)")
# Runs per side beyond which nobody runs them to settle a threshold.
_MOST_RUNS = 100


class Ratio(msgspec.Struct, frozen=True, kw_only=True):
    """A metric as a multiple of the baseline's, with its 95% interval `low` to `high`. `runs` are those of the baseline
    and of the check. `spread` is the deviation between runs (0.03 is 3%) that the interval rests on, `assumed` if no
    run showed it; None: the metric was 0 in some run, so that no share describes it."""

    value: float
    low: float
    high: float
    runs: tuple[int, int]
    spread: float | None
    assumed: bool


def assumed_spread(name: str) -> float:
    """Return the deviation between two runs (log scale) of a metric, with or without its host, that is assumed."""
    return _WIDE if _WIDELY_SPREAD.fullmatch(name) else _NARROW


def ratio_of(name: str, base: Sequence[float], found: Sequence[float]) -> Ratio | None:
    """Return the ratio of the mean of `found` to that of `base`, one value per run; None when the baseline is 0."""
    before, after = np.array(base, dtype=np.float64), np.array(found, dtype=np.float64)
    runs = len(before), len(after)
    if min(before.min(), after.min()) > 0:
        one, two = np.log(before), np.log(after)
        estimate = float(two.mean() - one.mean())
        freedom = len(one) + len(two) - 2
        spread = _deviation(one, two) if freedom else assumed_spread(name)
        reach = _quantile(freedom) * spread * math.sqrt(1 / len(one) + 1 / len(two))
        ends = (math.exp(min(700.0, estimate + side * reach)) for side in (0, -1, 1))
        return Ratio(
            **dict(zip(("value", "low", "high"), ends, strict=True)),
            runs=runs,
            spread=math.expm1(spread),
            assumed=not freedom,
        )
    if not before.mean():
        return None
    value = float(after.mean() / before.mean())
    freedom = len(before) + len(after) - 2
    # Counts that can be 0 are compared as they are; of one run each, without an interval.
    error = _deviation(before, after) / abs(float(before.mean())) if freedom else 0.0
    reach = _quantile(freedom) * error * math.sqrt(value**2 / len(before) + 1 / len(after))
    return Ratio(value=value, low=value - reach, high=value + reach, runs=runs, spread=None, assumed=False)


def runs_to_settle(ratio: Ratio, share: float) -> int | None:
    """Return how many runs per side would show on which side of `share` the ratio is, if it and the spread stay as they
    are; None when that takes more than anybody runs, or the spread is unknown."""
    if ratio.spread is None or ratio.value <= 0 or share <= 0:
        return None
    distance = abs(math.log(ratio.value / share))
    for number in range(2, _MOST_RUNS + 1):
        if _quantile(2 * number - 2) * math.log1p(ratio.spread) * math.sqrt(2 / number) < distance:
            return number
    return None


def _deviation(before: Floats, after: Floats) -> float:
    """Return the deviation within both sides, pooled."""
    squares = sum(float(((side - side.mean()) ** 2).sum()) for side in (before, after))
    return math.sqrt(squares / (len(before) + len(after) - 2))


def _quantile(freedom: int) -> float:
    """Return the quantile of the interval: Student's t, or the normal distribution's if the spread is assumed."""
    upper = 0.5 + LEVEL / 2
    return student_quantile(upper, freedom) if freedom else NormalDist().inv_cdf(upper)
