"""Thresholds: `p99 < 50ms`, `errors == 0`, `web1.cpu.idle > 20`, checked against the result of a run.

`rate >= 95% of baseline` compares a metric with a baseline, by an interval that allows for the spread between runs.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable, Sequence
from enum import StrEnum

import msgspec

from cockpit.analysis.baseline import Baseline, mean_of
from cockpit.analysis.ratios import Ratio, ratio_of, runs_to_settle
from cockpit.model.errors import UsageError
from cockpit.model.figures import HOST_FIGURES, LATENCIES, RunResult, figure, is_host_figure, is_latency
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
_PLAIN_VALUE = re.compile(r"(-?(?:\d+(?:\.\d*)?|\.\d+))\s*([kKmMgG%]?)")
_FACTORS = {"": 1.0, "%": 1.0, "k": 1e3, "m": 1e6, "g": 1e9}
_COUNTS = ("rate", "completed", "sent", "failed", "failed.share", "errors", "bytes", "generator.cpu")
_TIMES = ("duration", "generator.lag_p99")
_SHARES = ("failed.share", "generator.cpu", "coverage", "processes.cpu", "processes.user", "processes.system")


class Threshold(msgspec.Struct, frozen=True):
    """`name` compared by `operator` with `value` (seconds for times). `text` is what the user wrote.

    `of_baseline`: `value` is a share (0.95) of the baseline's metric.
    """

    text: str
    name: str
    operator: str
    value: float
    of_baseline: bool = False


class Status(StrEnum):
    """Whether a threshold holds. Inconclusive: the interval of the ratio to the baseline includes the limit."""

    HOLDS = "holds"
    FAILED = "failed"
    INCONCLUSIVE = "inconclusive"


class ThresholdResult(msgspec.Struct, frozen=True):
    """A threshold checked against a result. `found` None: no data, so it failed. `limit` is the value that `found` was
    compared with; None: the baseline has no such metric, so it failed, too. `ratio` is that to the baseline;
    `needed` runs per side would settle an inconclusive one, None: too many, or unknown."""

    threshold: Threshold
    found: float | None
    status: Status
    limit: float | None = None
    ratio: Ratio | None = None
    needed: int | None = None

    @property
    def holds(self) -> bool:
        return self.status is Status.HOLDS


def parse_threshold(text: str) -> Threshold:
    """Parse a threshold. Raises UsageError with the allowed forms."""
    match = _EXPRESSION.fullmatch(text)
    if not match:
        raise UsageError(
            f"{text!r} is no threshold; write it as 'p99 < 50ms', 'errors == 0' or 'rate >= 95% of baseline'"
        )
    name, sign, value = match.groups()
    if not _known(name):
        raise UsageError(f"{text!r}: unknown metric {name!r}; choose one of: {', '.join(known_figures())}")
    share = _OF_BASELINE.fullmatch(value)
    if share and sign in ("==", "!="):
        raise UsageError(f"{text!r}: runs vary, so a share of a baseline is never hit; use <, <=, > or >=")
    if share:
        return Threshold(" ".join(text.split()), name, sign, float(share[1]) / 100, of_baseline=True)
    try:
        number = _seconds(value) if is_time(name) else _plain(value)
    except ValueError as error:
        raise UsageError(f"{text!r}: {error}") from None
    if value.endswith("%") and not _is_share(name):
        instead = "; for a share of all requests write 'failed.share < 1%'" if name in ("failed", "errors") else ""
        raise UsageError(f"{text!r}: {name} is no percentage; write a number{instead}")
    return Threshold(text=text.strip(), name=name, operator=sign, value=number)


def hold(
    thresholds: Iterable[Threshold],
    result: RunResult,
    baseline: Baseline | None = None,
    runs: Sequence[RunResult] = (),
) -> tuple[ThresholdResult, ...]:
    """Return the outcome of each threshold. `result` is that of all `runs` together; none given: it is one run.
    Metrics of an unknown host have no data."""
    return tuple(
        _against_baseline(one, runs or (result,), baseline) if one.of_baseline else _plainly(one, result)
        for one in thresholds
    )


def _plainly(threshold: Threshold, result: RunResult) -> ThresholdResult:
    found = figure(result, threshold.name)
    holds = found is not None and _OPERATORS[threshold.operator](found, threshold.value)
    return ThresholdResult(threshold, found, Status.HOLDS if holds else Status.FAILED, threshold.value)


def _against_baseline(threshold: Threshold, runs: Sequence[RunResult], baseline: Baseline | None) -> ThresholdResult:
    values = [value for run in runs if (value := figure(run, threshold.name)) is not None]
    found = mean_of(values) if len(values) == len(runs) else None
    base = baseline.values(threshold.name) if baseline else []
    if found is None or not base:
        return ThresholdResult(threshold, found, Status.FAILED, threshold.value * mean_of(base) if base else None)
    limit, holds = threshold.value * mean_of(base), _OPERATORS[threshold.operator]
    ratio = ratio_of(threshold.name, base, values)
    if ratio is None:
        return ThresholdResult(threshold, found, Status.HOLDS if holds(found, limit) else Status.FAILED, limit)
    ends = {holds(end, threshold.value) for end in (ratio.low, ratio.high)}
    if len(ends) == 1:
        return ThresholdResult(threshold, found, Status.HOLDS if ends.pop() else Status.FAILED, limit, ratio)
    return ThresholdResult(threshold, found, Status.INCONCLUSIVE, limit, ratio, runs_to_settle(ratio, threshold.value))


def is_time(name: str) -> bool:
    """Return whether the metric is in seconds."""
    head, _, rest = name.partition(".")
    return name in _TIMES or is_latency(name) or (head in LATENCIES and is_latency(rest))


def _is_share(name: str) -> bool:
    """Return whether a metric is in per cent."""
    rest = name.partition(".")[2]
    return bool({name, rest} & {*_SHARES}) or rest.startswith("cpu.") or rest.endswith(".util")


def known_figures() -> tuple[str, ...]:
    """The names, with HOST and NN standing for any host and any percentile."""
    latencies = ("pNN", "mean", "max", *(f"{name}.pNN" for name in LATENCIES))
    single = ("disk.DISK.util", "disk.DISK.await", "net.INTERFACE.rxkb")
    return (*_COUNTS, *_TIMES, *latencies, *(f"HOST.{name}" for name in (*HOST_FIGURES, *single)))


def _known(name: str) -> bool:
    return name in _COUNTS or is_time(name) or is_host_figure(name.partition(".")[2])


def _seconds(text: str) -> float:
    """A time needs its unit: 50 would be seconds, which hardly anybody means."""
    plain = _PLAIN_VALUE.fullmatch(text)
    if plain and not plain[2] and float(text):
        raise ValueError(f"a time needs a unit; write {text}ms or {text}s")
    return parse_duration(text)


def _plain(text: str) -> float:
    match = _PLAIN_VALUE.fullmatch(text)
    if not match:
        raise ValueError(f"{text!r} is not a number; write it as 500, 12.5k or 20")
    return float(match[1]) * _FACTORS[match[2].lower()]
