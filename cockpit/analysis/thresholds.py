"""Thresholds: `p99 < 50ms`, `errors == 0`, `web1.cpu.idle > 20`, checked against the result of a run.

`rate >= 95% of baseline` compares a metric with a baseline, by an interval that allows for the spread between runs.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from enum import StrEnum

import msgspec

from cockpit.analysis.baseline import Baseline, Ratio, mean_of, ratio_of, runs_to_settle
from cockpit.metrics.catalogue import LATENCIES, entry, percent_of
from cockpit.metrics.results import RunResult, run_result
from cockpit.metrics.units import LATENCY, PERCENT, SPAN
from cockpit.metrics.values import HOST_METRICS, RUN_METRICS, is_metric, metric_value
from cockpit.model.errors import UsageError
from cockpit.model.load.plan import LoadPlan
from cockpit.model.state import State
from cockpit.model.units import parse_duration

_OPERATORS: dict[str, Callable[[float, float], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
}
_EXPRESSION = re.compile(r"\s*([A-Za-z0-9_.-]+?)\s*(<=|>=|==|!=|<|>)\s*(\S+(?:\s*%)?(?:\s+of\s+baseline)?)\s*")
_OF_BASELINE = re.compile(r"(\d+(?:\.\d*)?|\.\d+)\s*%\s+of\s+baseline")
_PLAIN_VALUE = re.compile(r"(-?(?:\d+(?:\.\d*)?|\.\d+))\s*([kKmMgG%]?|[KMG]iB)")
_FACTORS = {"": 1.0, "%": 1.0, "k": 1e3, "m": 1e6, "g": 1e9, "kib": 2.0**10, "mib": 2.0**20, "gib": 2.0**30}


# The longest time (s) that a threshold may name, as long as a recording.
_LONGEST = 1e8
# Thresholds if none is given; with a baseline for closed and open load.
DEFAULT_THRESHOLD = "failed == 0"
DEFAULT_AGAINST = ("rate >= 95% of baseline", "p99 <= 110% of baseline")


class Threshold(msgspec.Struct, frozen=True):
    """Metric `name` compared by `operator` with `value` (seconds for times). `text` is the threshold as written.

    `of_baseline`: `value` is a share (0.95) of the baseline's metric.
    """

    text: str
    name: str
    operator: str
    value: float
    of_baseline: bool = False

    @property
    def key(self) -> tuple[str, str, float, bool]:
        """A key that is equal for different spellings of one threshold."""
        return self.name, self.operator, self.value, self.of_baseline


class Status(StrEnum):
    """Result of a threshold. Inconclusive: the interval of the ratio to the baseline includes the limit, or the
    percentile is interpolated from a summary and the limit is between the reported neighbours."""

    HOLDS = "holds"
    FAILED = "failed"
    INCONCLUSIVE = "inconclusive"


class ThresholdResult(msgspec.Struct, frozen=True):
    """A threshold checked against a result. `value` is that of the metric; None: no data, so the threshold failed.
    `limit` is the value it was compared with; None: the baseline has no such metric, so the threshold failed. `ratio`
    is relative to the baseline. `needed` is the number of runs per side that would settle an inconclusive result; None:
    too many, or unknown."""

    threshold: Threshold
    value: float | None
    status: Status
    limit: float | None = None
    ratio: Ratio | None = None
    needed: int | None = None

    @property
    def holds(self) -> bool:
        return self.status is Status.HOLDS


def distinct(thresholds: Iterable[Threshold]) -> tuple[Threshold, ...]:
    """Return each threshold once, in its first spelling."""
    by_key: dict[tuple[str, str, float, bool], Threshold] = {}
    for threshold in thresholds:
        by_key.setdefault(threshold.key, threshold)
    return tuple(by_key.values())


def parse_threshold(text: str) -> Threshold:
    """Parse a threshold. Raises UsageError with the allowed forms."""
    match = _EXPRESSION.fullmatch(text)
    if not match:
        raise UsageError(
            f"{text!r}: invalid threshold; write it as 'p99 < 50ms', 'errors == 0' or 'rate >= 95% of baseline'"
        )
    name, sign, value = match.groups()
    if not is_metric(name):
        raise UsageError(f"{text!r}: unknown metric {name!r}; choose one of: {', '.join(known_metrics())}")
    share = _OF_BASELINE.fullmatch(value)
    if share and sign in ("==", "!="):
        raise UsageError(f"{text!r}: runs vary, so no run equals a share of a baseline; use <, <=, > or >=")
    if share and math.isinf(float(share[1])):
        raise UsageError(f"{text!r}: the value is too large")
    if share:
        return Threshold(" ".join(text.split()), name, sign, float(share[1]) / 100, of_baseline=True)
    try:
        number = _seconds(value) if is_time(name) else _plain(value)
        if not math.isfinite(number) or (is_time(name) and number > _LONGEST):
            raise ValueError("the value is too large")
    except ValueError as error:
        raise UsageError(f"{text!r}: {error}") from None
    if value.endswith("%") and name in ("failed", "errors"):
        name = "failed.share"
    elif value.endswith("%") and entry(name).unit is not PERCENT:
        raise UsageError(f"{text!r}: {name} is not a percentage; write a number")
    return Threshold(text=text.strip(), name=name, operator=sign, value=number)


def with_defaults(own: tuple[Threshold, ...], base: Baseline | None, plan: LoadPlan) -> tuple[Threshold, ...]:
    """Return the thresholds, or the default one without any, and the default comparison with the baseline if none is
    given."""
    chosen = own or (parse_threshold(DEFAULT_THRESHOLD),)
    if base is None or any(threshold.of_baseline for threshold in own):
        return chosen
    return (*chosen, parse_threshold(DEFAULT_AGAINST[plan.open]))


def check_thresholds(
    thresholds: Iterable[Threshold],
    result: RunResult,
    baseline: Baseline | None = None,
    runs: Sequence[RunResult] = (),
) -> tuple[ThresholdResult, ...]:
    """Check each threshold. `result` covers all `runs`; without `runs` it is a single run. Metrics of an unknown host
    have no data."""
    return tuple(
        _check_relative(each, runs or (result,), baseline) if each.of_baseline else _check_absolute(each, result)
        for each in thresholds
    )


def check_thresholds_so_far(state: State, run: int, baseline: Baseline | None = None) -> tuple[ThresholdResult, ...]:
    """Check the session's thresholds against a run so far. Invalid ones are left out, without a baseline also those
    relative to it. With a baseline and no relative threshold, the default comparison is added."""
    result = run_result(state, run)
    if result is None or state.started is None:
        return ()
    parsed = []
    for text in state.started.thresholds:
        with suppress(UsageError):
            parsed.append(parse_threshold(text))
    relative = tuple(threshold for threshold in parsed if threshold.of_baseline)
    if baseline is None:
        parsed = [threshold for threshold in parsed if not threshold.of_baseline]
    elif not relative:
        parsed.append(parse_threshold(DEFAULT_AGAINST[result.plan.open]))
    return check_thresholds(parsed, result, baseline)


def _check_absolute(threshold: Threshold, result: RunResult) -> ThresholdResult:
    measured = metric_value(result, threshold.name)
    possible = (measured, *_bounds(threshold, result)) if measured is not None else ()
    holds = {_OPERATORS[threshold.operator](value, threshold.value) for value in possible}
    status = Status.INCONCLUSIVE if len(holds) > 1 else Status.HOLDS if holds == {True} else Status.FAILED
    return ThresholdResult(threshold, measured, status, threshold.value)


def _bounds(threshold: Threshold, result: RunResult) -> tuple[float, ...]:
    """Return the lowest and the highest possible value of an interpolated percentile; () if the value is exact."""
    percent = percent_of(threshold.name)
    if result.totals is None or percent is None:
        return ()
    below, above = result.totals.around(percent)
    if below == above:
        return ()
    latency = result.counts.latency
    return (
        0.0 if below is None else latency.percentile(below),
        math.inf if above is None else latency.percentile(above),
    )


def _check_relative(threshold: Threshold, runs: Sequence[RunResult], baseline: Baseline | None) -> ThresholdResult:
    values = [value for run in runs if (value := metric_value(run, threshold.name)) is not None]
    mean = mean_of(values) if len(values) == len(runs) else None
    base = baseline.values(threshold.name) if baseline else []
    if mean is None or not base:
        return ThresholdResult(threshold, mean, Status.FAILED, threshold.value * mean_of(base) if base else None)
    limit, holds = threshold.value * mean_of(base), _OPERATORS[threshold.operator]
    if any(run.totals for run in runs):
        return ThresholdResult(threshold, mean, Status.INCONCLUSIVE, limit)
    ratio = ratio_of(threshold.name, base, values)
    if ratio is None:
        return ThresholdResult(threshold, mean, Status.HOLDS if holds(mean, limit) else Status.FAILED, limit)
    bounds = {holds(end, threshold.value) for end in (ratio.low, ratio.high)}
    if len(bounds) == 1:
        return ThresholdResult(threshold, mean, Status.HOLDS if bounds.pop() else Status.FAILED, limit, ratio)
    return ThresholdResult(threshold, mean, Status.INCONCLUSIVE, limit, ratio, runs_to_settle(ratio, threshold.value))


def is_time(name: str) -> bool:
    return entry(name).unit in (LATENCY, SPAN)


def known_metrics() -> tuple[str, ...]:
    """Return the names, with HOST for any host and NN for any percentile."""
    latencies = ("pNN", "mean", "max", *(f"{name}.pNN" for name in LATENCIES))
    single = ("disk.DISK.util", "disk.DISK.await", "net.INTERFACE.rxkb")
    return (*RUN_METRICS, *latencies, *(f"HOST.{name}" for name in (*HOST_METRICS, *single)))


def _seconds(text: str) -> float:
    """Parse a time, which needs a unit: 50 would be seconds, which hardly anybody means."""
    plain = _PLAIN_VALUE.fullmatch(text)
    if plain and not plain[2] and float(text):
        raise ValueError(f"a time needs a unit; write {text}ms or {text}s")
    return parse_duration(text)


def _plain(text: str) -> float:
    match = _PLAIN_VALUE.fullmatch(text)
    if not match:
        raise ValueError(f"{text!r} is not a number; write it as 500, 12.5k or, for bytes, 2GiB")
    return float(match[1]) * _FACTORS[match[2].lower()]


# Failures count at once; other metrics are unreliable in the first seconds.
_AT_ONCE = ("failed", "errors")
# Metrics that only grow during a run: a lower bound can be checked only at its end.
GROWING = ("completed", "sent", "bytes", "duration")
# Session seconds between two checks.
_EVERY = 0.2
# Seconds of a run before anything but failures can end it.
_FIRST = 2.0


def check_abort(threshold: Threshold) -> Threshold:
    """Return the threshold if it can end a run. Raises UsageError."""
    if threshold.name in GROWING:
        raise UsageError(f"{threshold.text!r}: {threshold.name} is known only at the end of a run; use --threshold")
    return threshold


def check_limit(threshold: Threshold) -> Threshold:
    """Return the threshold if it can limit the load of a capacity search. Raises UsageError."""
    if threshold.of_baseline or threshold.name in (*GROWING, "rate"):
        raise UsageError(f"{threshold.text!r}: not a limit of the load; write 'p99 < 50ms' or 'errors < 0.1%'")
    return threshold


class AbortCheck:
    """Checks thresholds during a run. It is called with each state, and returns True once a threshold has failed.
    `failed` is the result of that threshold."""

    def __init__(self, thresholds: Sequence[Threshold], baseline: Baseline | None = None) -> None:
        self.failed: ThresholdResult | None = None
        self._thresholds = thresholds
        self.baseline = baseline
        self._checked = 0.0

    def __call__(self, state: State) -> bool:
        if self.failed is None and self._thresholds and state.running and state.t >= self._checked + _EVERY:
            self._checked = state.t
            self.failed = self._check(state, state.running)
        return self.failed is not None

    def _check(self, state: State, run: int) -> ThresholdResult | None:
        result = run_result(state, run)
        if result is None or result.segments[0].warmup:
            return None
        early = result.seconds < _FIRST
        known = [threshold for threshold in self._thresholds if not early or threshold.name in _AT_ONCE]
        outcomes = check_thresholds(known, result, self.baseline)
        failed = (each for each in outcomes if each.value is not None and each.status is Status.FAILED)
        return next(failed, None)
