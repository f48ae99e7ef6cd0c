"""Seconds of load summed into longer time ranges, for charts with fewer columns than seconds."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from math import inf

from cockpit.model.histogram import Histogram
from cockpit.model.load.seconds import LoadSecond

# Long ranges are summed from cached shorter ones: length (s) -> length of the parts (s).
_PARTS = {20: 10, 30: 10, 60: 30, 120: 60, 150: 30, 300: 150, 600: 300, 900: 300, 1800: 900}
# Seconds that are this far behind the newest one, or less, may still receive ticks.
_OPEN = 3
_KEPT = 4096


@dataclass(frozen=True)
class TimeRange:
    """Load summed over `seconds` seconds, of which ticks cover `covered` s.

    `least` and `most` are the extreme rates (responses/s) of single seconds; a second that ticks cover by less than
    half counts only without any other. `failed` counts requests, `errors` those without a complete response. `failing`,
    `stalled` and `saturated` count seconds: with failures, without any response, and with the generator as the
    bottleneck. `variants` are the parts of a duet, else ().
    """

    seconds: int
    covered: float
    completed: int
    failed: int
    errors: int
    failing: int
    stalled: int
    saturated: int
    least: float
    most: float
    latency: Histogram
    variants: tuple[TimeRange, ...] = ()

    @property
    def rate(self) -> float:
        """Responses/s, the mean over the time that ticks cover."""
        return self.completed / self.covered if self.covered > 0 else 0.0

    @property
    def ended_rate(self) -> float:
        """Responses and failed requests/s."""
        return (self.completed + self.errors) / self.covered if self.covered > 0 else 0.0

    @property
    def good_rate(self) -> float:
        """Expected responses/s."""
        return self.ended_rate - self.failed / self.covered if self.covered > 0 else 0.0

    @cached_property
    def p1(self) -> float:
        """Latency (s), as p50 and p99."""
        return self.latency.percentile(1)

    @cached_property
    def p50(self) -> float:
        return self.latency.percentile(50)

    @cached_property
    def p99(self) -> float:
        return self.latency.percentile(99)


def of_seconds(seconds: Sequence[LoadSecond]) -> TimeRange | None:
    """Return the sum of these seconds, without those in which no access log was read; None without any."""
    seconds = [second for second in seconds if second.unread < 1]
    if not seconds:
        return None
    whole = [second.rate for second in seconds if second.end - second.start >= 0.5]
    rates = whole or [second.rate for second in seconds]
    return TimeRange(
        seconds=len(seconds),
        covered=sum(second.end - second.start for second in seconds),
        completed=sum(second.completed for second in seconds),
        failed=sum(second.failed for second in seconds),
        errors=sum(second.errors for second in seconds),
        stalled=sum(second.stalled for second in seconds),
        failing=sum(second.failed > 0 for second in seconds),
        saturated=sum(second.saturated for second in seconds),
        least=min(rates),
        most=max(rates),
        latency=Histogram.merged(second.latency for second in seconds),
        variants=tuple(filter(None, (_variant(seconds, at) for at in range(len(seconds[0].variants))))),
    )


def _variant(seconds: Sequence[LoadSecond], at: int) -> TimeRange | None:
    return of_seconds([second.part(at) for second in seconds if len(second.variants) > at])


def joined(ranges: Iterable[TimeRange | None]) -> TimeRange | None:
    """Return the sum of several ranges; None if none of them has load."""
    parts = [part for part in ranges if part is not None]
    if len(parts) < 2:
        return parts[0] if parts else None
    return TimeRange(
        **{name: sum(getattr(part, name) for part in parts) for name in _SUMMED},
        least=min(part.least for part in parts),
        most=max(part.most for part in parts),
        latency=Histogram.merged(part.latency for part in parts),
        variants=tuple(summed for each in _sides(parts) if (summed := joined(each)) is not None),
    )


def _sides(parts: Sequence[TimeRange]) -> Iterable[tuple[TimeRange, ...]]:
    return zip(*(part.variants for part in parts if part.variants), strict=True)


# Fields that are summed.
_SUMMED = tuple(field.name for field in fields(TimeRange) if field.name not in ("least", "most", "latency", "variants"))


class TimeRanges:
    """Cache of the time ranges of one session: a finished range is summed once.

    For a screen that draws the same ranges repeatedly, also after a seek. At most `most` seconds are summed between two
    calls of `reset_budget`; further ranges are then None, and `behind` is set.
    """

    def __init__(self, most: float = inf, kept: int = _KEPT) -> None:
        self._known: dict[tuple[int, int], TimeRange | None] = {}
        self._most = self._left = most
        self._kept = kept
        self.behind = False

    def reset_budget(self) -> None:
        """Allow `most` seconds more to be summed."""
        self._left, self.behind = self._most, False

    def of(self, seconds: Sequence[LoadSecond], start: int, length: int, until: int) -> TimeRange | None:
        """Return the load from session second `start` on for `length` s, before second `until`; None: no load."""
        key = (start, length)
        if start >= until:
            return None
        # After a seek back, seconds of a summed range can be later than the shown instant.
        if start + length <= until and key in self._known:
            return self._known[key]
        over = bool(seconds) and start + length <= seconds[-1].second - _OPEN
        part = _PARTS.get(length)
        if part is not None:
            parts = [self.of(seconds, at, part, until) for at in range(start, start + length, part)]
            if self.behind:
                return None
            summed = joined(parts)
        elif self._left <= 0:
            self.behind = True
            return None
        else:
            self._left -= length
            summed = of_seconds(between(seconds, start, min(start + length, until)))
        if over:
            self._known[key] = summed
            if len(self._known) > self._kept:
                # The shortest ranges are needed only to sum longer ones.
                shortest = min(length for _, length in self._known)
                self._known = {key: summed for key, summed in self._known.items() if key[1] > shortest}
        return summed


def between(seconds: Sequence[LoadSecond], start: int, end: int) -> Sequence[LoadSecond]:
    """Return the seconds from `start` to before `end`."""
    low, high = (bisect_left(seconds, at, key=lambda second: second.second) for at in (start, end))
    return seconds[low:high]
