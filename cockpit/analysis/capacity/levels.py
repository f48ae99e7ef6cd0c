"""Limits of a capacity search, and levels of load checked against them. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress

import msgspec

from cockpit.analysis.thresholds import (
    Status,
    Threshold,
    check_limit,
    check_thresholds,
    distinct,
    is_time,
    parse_threshold,
)
from cockpit.analysis.warnings import BOUND
from cockpit.metrics.catalogue import percent_of
from cockpit.metrics.results import RunResult, latency
from cockpit.metrics.values import metric_value
from cockpit.model.errors import UsageError

# Limits if none are typed, and the limit of failures if the typed limits have none.
DEFAULT_LIMITS = "p99 < 50ms, errors < 0.1%"
FAILURES = "failed < 1%"
_FAILURES = ("failed", "failed.share", "errors")
# A queue that grows by more than this number of standard deviations of random arrivals and service times is unstable.
_GROWTH = 4.0
# Requests that may exceed the limit of a metric that is no share, and requests that exceed a limit that only holds or
# fails.
_PSEUDO, _CLEARLY = 20.0, 30.0
# Allowed requests of a level without responses.
_FEWEST = 1e-6
# A generator whose worker uses or waits for this share of a CPU cannot send much more.
_BUSY = 0.7
_LONGEST_NS = 1 << 53
# Share of requests for limits without one.
LEAST_SHARE = 0.001


class Level(msgspec.Struct, frozen=True, kw_only=True):
    """A level of load, checked against the limits for `seconds`. `exceeding`: number of requests that were slower than
    the limit `decisive`, or failed; `allowed`: the number that may be, `share` of all requests. The decisive limit has
    the highest score.
    `saturated`: the generator was late or busy, so the level shows nothing about the target; `limited`: because of its
    rate, for it used or waited for nearly all of a CPU, and not because of a disturbance."""

    rate: float
    seconds: float
    holds: bool
    exceeding: float
    allowed: float
    share: float = LEAST_SHARE
    decisive: str = ""
    stable: bool = True
    saturated: bool = False
    limited: bool = False

    @property
    def score(self) -> float:
        """The logarithm of `exceeding` relative to `allowed`."""
        return score(self.exceeding, self.allowed)

    @property
    def clearly_failed(self) -> bool:
        """Whether counting errors do not explain that the level failed."""
        return self.score > 1 / math.sqrt(self.allowed + 0.5)


def is_hopeless(level: Level, seconds: float) -> bool:
    """Return whether a level that was measured so far would fail after `seconds`, whatever follows."""
    return level.exceeding > _CLEARLY + level.allowed * seconds / max(level.seconds, 0.1)


def score(exceeding: float, allowed: float) -> float:
    return math.log((exceeding + 0.5) / (allowed + 0.5))


def parse_limits(text: str) -> tuple[Threshold, ...]:
    """Parse `p99 < 50ms, errors < 0.1%`; a limit of failures is added if there is none. Raises UsageError."""
    parts = [part.strip() for part in text.split(",") if part.strip()]
    limits = [check_limit(parse_threshold(part)) for part in parts]
    if not limits:
        raise UsageError(f"{text!r}: no limit; write it as '{DEFAULT_LIMITS}'")
    if not any(limit.name in _FAILURES for limit in limits):
        limits.append(parse_threshold(FAILURES))
    return distinct(limits)


def suggested_limits(thresholds: Sequence[str]) -> str:
    """Return those thresholds of a profile that can limit a search as text, else the default limits."""
    usable = []
    for text in thresholds:
        with suppress(UsageError):
            usable.append(check_limit(parse_threshold(text)).text)
    return ", ".join(usable) or DEFAULT_LIMITS


def longest_wait(limits: Sequence[Threshold]) -> float:
    """Return the longest latency of the limits (s), at most 3."""
    return min(3.0, max((limit.value for limit in limits if is_time(limit.name)), default=0.0))


def shares(limits: Sequence[Threshold]) -> tuple[float, ...]:
    """Return the allowed share of requests of each limit of a percentile or of failures, if it is greater than 0."""
    allowed = (_allowed(limit) for limit in limits)
    return tuple(share for share in allowed if share)


def level_of(rate: float, result: RunResult, limits: Sequence[Threshold]) -> Level:
    """Return the level of an arrival rate from its result."""
    counts = result.counts
    growth = counts.sent - counts.ended - counts.abandoned
    stable = not counts.queued and not counts.dropped and growth <= _GROWTH * math.sqrt(counts.sent + 1)
    saturated = result.saturated > BOUND * result.seconds
    counted = [(*_counted(limit, result), limit.text, _allowed(limit) or LEAST_SHARE) for limit in limits]
    exceeding, allowed, decisive, share = max(counted, key=_weight)
    if not stable:
        exceeding, allowed, decisive, share = _CLEARLY, 1.0, "stable queue", LEAST_SHARE
    return Level(
        rate=rate,
        seconds=result.seconds,
        holds=stable and all(threshold.holds for threshold in check_thresholds(limits, result)),
        exceeding=exceeding,
        allowed=max(allowed, _FEWEST),
        share=share,
        decisive=decisive,
        stable=stable,
        saturated=saturated,
        limited=saturated and result.generator_cpu + result.cpu_wait >= _BUSY,
    )


def _weight(counted: tuple[float, float, str, float]) -> tuple[bool, float]:
    """Return the sort key of limits: the highest score, or if nothing exceeds them, the most certain one."""
    exceeding, allowed, *_ = counted
    return exceeding > 0, score(exceeding, allowed) if exceeding else allowed


def _allowed(limit: Threshold) -> float | None:
    """Return the share of requests that may exceed the limit; None: it is no limit of a share."""
    percent = percent_of(limit.name)
    if limit.operator not in ("<", "<="):
        return None
    if percent is not None:
        return 1 - percent / 100
    return limit.value / 100 if limit.name == "failed.share" else None


def _counted(limit: Threshold, result: RunResult) -> tuple[float, float]:
    """Return the exceeding and the allowed number of requests of a limit: see Level."""
    share = _allowed(limit)
    if share:
        exceeding, total = _exceeding(limit, result)
        return exceeding, total * share
    value = metric_value(result, limit.name)
    if value is not None and value > 0 and limit.value > 0 and limit.operator not in ("==", "!="):
        ratio = value / limit.value if limit.operator in ("<", "<=") else limit.value / value
        return _PSEUDO * ratio, _PSEUDO
    holds = check_thresholds((limit,), result)[0].status is Status.HOLDS
    return 0.0 if holds else _CLEARLY, 1.0


def _exceeding(limit: Threshold, result: RunResult) -> tuple[int, int]:
    """Return the number of requests that exceed the limit, and of all requests."""
    if limit.name == "failed.share":
        return result.counts.failed, result.counts.ended
    head, dot, _ = limit.name.rpartition(".p")
    histogram = latency(result.counts, head if dot and head else "response")
    return histogram.between((round(limit.value * 1e9), _LONGEST_NS))[0], histogram.count
