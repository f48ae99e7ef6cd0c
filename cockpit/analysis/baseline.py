"""A named baseline: the results of one or more runs under one load, for comparison with later runs.

A baseline keeps the histograms of its runs, so that any percentile can be computed.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from statistics import NormalDist, fmean

import msgspec
import numpy as np

from cockpit.analysis.intervals import Floats, student_quantile
from cockpit.metrics.catalogue import LATENCIES, latency_parts
from cockpit.metrics.results import RunResult, latency
from cockpit.metrics.values import RUN_METRICS, all_host_metrics, latency_value
from cockpit.model.histogram import EMPTY, Histogram
from cockpit.model.load.plan import LoadPlan

FORMAT = 2


class BaselineRun(msgspec.Struct, frozen=True, kw_only=True):
    """One run of a baseline. `wall` is the start of its session (epoch s), `source` names its origin. `metrics` are
    keyed by the names that thresholds use, `histograms` by LATENCIES, `hosts` by host name."""

    source: str
    wall: float
    metrics: Mapping[str, float]
    histograms: Mapping[str, Histogram]
    hosts: Mapping[str, Mapping[str, float]]

    def metric(self, name: str) -> float | None:
        """Return a metric by the name that thresholds use; None without data."""
        head, _, rest = name.partition(".")
        if name in self.metrics:
            return self.metrics[name]
        if head in self.hosts and rest in self.hosts[head]:
            return self.hosts[head][rest]
        parts = latency_parts(name)
        return latency_value(self.histograms.get(parts[0], EMPTY), parts[1]) if parts else None


class Baseline(msgspec.Struct, frozen=True, kw_only=True):
    """A baseline with at least one run; `runs` are in the order in which they were added."""

    format: int = FORMAT
    name: str
    plan: LoadPlan
    runs: tuple[BaselineRun, ...]

    def values(self, name: str) -> list[float]:
        values = [value for run in self.runs if (value := run.metric(name)) is not None]
        return values if len(values) == len(self.runs) else []

    def metric(self, name: str) -> float | None:
        """Return a metric's mean over the runs; None when a run has no data for it."""
        values = self.values(name)
        return mean_of(values) if values else None


def mean_of(values: Sequence[float]) -> float:
    """Return the mean on the scale on which runs are compared: the geometric mean if all values are above 0."""
    if len(values) == 1:
        return values[0]
    return math.exp(fmean(map(math.log, values))) if min(values) > 0 else fmean(values)


def baseline_run(source: str, wall: float, result: RunResult) -> BaselineRun:
    """Return a run in the form that a baseline stores, without secrets and addresses."""
    return BaselineRun(
        source=source,
        wall=wall,
        metrics={name: value_of(result) for name, value_of in RUN_METRICS.items()},
        histograms={kind: latency(result.counts, kind) for kind in LATENCIES},
        hosts=all_host_metrics(result),
    )


def baseline_of(name: str, runs: Sequence[BaselineRun], plan: LoadPlan) -> Baseline:
    """Return a baseline of these runs under the load `plan`, without its secrets."""
    return Baseline(name=name, plan=plan.without_secrets(), runs=tuple(runs))


# Confidence level of the interval: at most 2.5% of checks fail wrongly, and at most 2.5% pass wrongly.
LEVEL = 0.95
# Assumed standard deviation between runs (log scale) if each side has a single run: of tail latencies and process
# churn, and of all other metrics.
_TAIL_SPREAD, _OTHER_SPREAD = 0.4, 0.15
_TAIL = re.compile(r"(?:.*\.)?(?:p9[5-9](?:[._]\d+)?|p100|max)")
# Counts of rare events.
_COUNTS = ("failed", "errors")
# Maximum number of runs per side that is worth suggesting.
_MOST_RUNS = 100


class Ratio(msgspec.Struct, frozen=True, kw_only=True):
    """The ratio of a metric to the baseline, with its 95% interval from `low` to `high`. `runs` counts the runs of the
    baseline and of the check. `spread` is the standard deviation between runs (log scale: 0.03 is 3%); `assumed`: it
    was not estimated from the runs. A `spread` of None: the metric was 0 in some run and has no logarithm."""

    value: float
    low: float
    high: float
    runs: tuple[int, int]
    spread: float | None
    assumed: bool


def is_tail(name: str) -> bool:
    """Return whether a metric is a tail latency: p95 or above, or the maximum."""
    return _TAIL.fullmatch(name) is not None


def assumed_spread(name: str) -> float:
    """Return the assumed standard deviation between runs (log scale) of a metric, named with or without its host."""
    return _TAIL_SPREAD if is_tail(name) or name.endswith("processes.spawned_per_s") else _OTHER_SPREAD


def ratio_of(name: str, base: Sequence[float], values: Sequence[float]) -> Ratio | None:
    """Return the ratio of the mean of `found` to that of `base`, one value per run; None when the baseline is 0."""
    before, after = np.array(base, dtype=np.float64), np.array(values, dtype=np.float64)
    runs = len(before), len(after)
    if min(before.min(), after.min()) > 0:
        first, second = np.log(before), np.log(after)
        estimate = float(second.mean() - first.mean())
        freedom = len(first) + len(second) - 2
        spread = _deviation(first, second) if freedom else assumed_spread(name)
        # Counts have Poisson noise: a variance of 1/n on the log scale.
        chance = 0.0 if freedom or name not in _COUNTS else 1 / base[0] + 1 / values[0]
        reach = _quantile(freedom) * math.sqrt(spread**2 * (1 / len(first) + 1 / len(second)) + chance)
        bounds = (math.exp(min(700.0, estimate + side * reach)) for side in (0, -1, 1))
        return Ratio(
            **dict(zip(("value", "low", "high"), bounds, strict=True)),
            runs=runs,
            spread=spread,
            assumed=not freedom,
        )
    if not before.mean():
        return None
    value = float(after.mean() / before.mean())
    freedom = len(before) + len(after) - 2
    # Metrics that can be 0 are compared on the linear scale. With a single run per side there is no interval.
    error = _deviation(before, after) / abs(float(before.mean())) if freedom else 0.0
    reach = _quantile(freedom) * error * math.sqrt(value**2 / len(before) + 1 / len(after))
    return Ratio(value=value, low=value - reach, high=value + reach, runs=runs, spread=None, assumed=False)


def runs_to_settle(ratio: Ratio, share: float) -> int | None:
    """Return the number of runs per side for an interval that excludes `share`, if ratio and spread stay the same.
    None: more than _MOST_RUNS, or the spread is unknown."""
    if ratio.spread is None or ratio.value <= 0 or share <= 0:
        return None
    distance = abs(math.log(ratio.value / share))
    for number in range(2, _MOST_RUNS + 1):
        if _quantile(2 * number - 2) * ratio.spread * math.sqrt(2 / number) < distance:
            return number
    return None


def _deviation(before: Floats, after: Floats) -> float:
    squares = sum(float(((side - side.mean()) ** 2).sum()) for side in (before, after))
    return math.sqrt(squares / (len(before) + len(after) - 2))


def _quantile(freedom: int) -> float:
    """Return the quantile for the interval: of Student's t, or of the normal distribution if the spread is assumed."""
    upper = 0.5 + LEVEL / 2
    return student_quantile(upper, freedom) if freedom else NormalDist().inv_cdf(upper)
