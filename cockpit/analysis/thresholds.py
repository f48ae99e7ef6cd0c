"""Thresholds: `p99 < 50ms`, `errors == 0`, `web1.cpu.idle > 20`, held against a run's result.

`rate >= 95% of baseline` is held against what the same figure was in a baseline.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable

import msgspec

from cockpit.analysis.baseline import Baseline
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
_COUNTS = ("rate", "completed", "sent", "failed", "errors", "bytes", "generator.cpu")
_TIMES = ("duration", "generator.lag_p99")


class Threshold(msgspec.Struct, frozen=True):
    """`name` compared by `operator` with `value` (seconds for times). `text` is what the user wrote.

    `of_baseline`: `value` is a share (0.95) of what the figure was in the baseline.
    """

    text: str
    name: str
    operator: str
    value: float
    of_baseline: bool = False


class Outcome(msgspec.Struct, frozen=True):
    """A threshold held against a result. `found` None is: no data, which does not hold. `limit` is what `found` was
    compared with; None: the baseline has no such figure, which does not hold either."""

    threshold: Threshold
    found: float | None
    holds: bool
    limit: float | None = None


def parse_threshold(text: str) -> Threshold:
    """Raises UsageError, which says what is allowed."""
    match = _EXPRESSION.fullmatch(text)
    if not match:
        raise UsageError(
            f"{text!r} is no threshold; write it as 'p99 < 50ms', 'errors == 0' or 'rate >= 95% of baseline'"
        )
    name, sign, value = match.groups()
    if not _known(name):
        raise UsageError(f"{text!r}: unknown figure {name!r}; allowed: {', '.join(known_figures())}")
    share = _OF_BASELINE.fullmatch(value)
    if share:
        return Threshold(" ".join(text.split()), name, sign, float(share[1]) / 100, of_baseline=True)
    try:
        number = parse_duration(value) if is_time(name) else _plain(value)
    except ValueError as error:
        raise UsageError(f"{text!r}: {error}") from None
    return Threshold(text=text.strip(), name=name, operator=sign, value=number)


def hold(thresholds: Iterable[Threshold], result: RunResult, baseline: Baseline | None = None) -> tuple[Outcome, ...]:
    """Each threshold with what was found. A figure of a host that the run does not know has no data."""
    outcomes = []
    for threshold in thresholds:
        found, limit = figure(result, threshold.name), _limit(threshold, baseline)
        holds = found is not None and limit is not None and _OPERATORS[threshold.operator](found, limit)
        outcomes.append(Outcome(threshold, found, holds, limit))
    return tuple(outcomes)


def _limit(threshold: Threshold, baseline: Baseline | None) -> float | None:
    if not threshold.of_baseline:
        return threshold.value
    was = baseline.figure(threshold.name) if baseline else None
    return None if was is None else threshold.value * was


def is_time(name: str) -> bool:
    """Whether the figure is in seconds."""
    head, _, rest = name.partition(".")
    return name in _TIMES or is_latency(name) or (head in LATENCIES and is_latency(rest))


def known_figures() -> tuple[str, ...]:
    """The names, with HOST and NN standing for any host and any percentile."""
    latencies = ("pNN", "mean", "max", *(f"{name}.pNN" for name in LATENCIES))
    single = ("disk.DISK.util", "disk.DISK.await", "net.INTERFACE.rxkb")
    return (*_COUNTS, *_TIMES, *latencies, *(f"HOST.{name}" for name in (*HOST_FIGURES, *single)))


def _known(name: str) -> bool:
    return name in _COUNTS or is_time(name) or is_host_figure(name.partition(".")[2])


def _plain(text: str) -> float:
    match = _PLAIN_VALUE.fullmatch(text)
    if not match:
        raise ValueError(f"{text!r} is not a number; write it as 500, 12.5k or 20")
    return float(match[1]) * _FACTORS[match[2].lower()]
