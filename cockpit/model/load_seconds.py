"""Seconds of load: those that ticks are counted into, and those that charts, windows and verdicts read."""

from __future__ import annotations

from collections.abc import Mapping
from operator import attrgetter
from types import MappingProxyType

import msgspec

from cockpit.model.counts import Counts
from cockpit.model.histogram import EMPTY, Histogram

# Bucket edges (ns) of LoadSecond.density: eight a decade from 1 µs to 100 s, as a heat map needs them.
LATENCY_EDGES = tuple(round(1000 * 10 ** (step / 8)) for step in range(8 * 8 + 1))


class LoadSecond(msgspec.Struct, frozen=True, kw_only=True):
    """One second of load: `second` is session time rounded down; `start` to `end` is the part that ticks cover.

    `latency` is response time (under closed load the service time) by coarse buckets, so that seconds can be merged
    into any window; `p50`, `p99` and `max` are of it. `failed` as in Counts;
    `errors` of them got no complete response. `saturated`: the generator was the bottleneck for most of it.
    `in_flight` requests had no complete response at its end.
    `workers` is CPU of each worker by number, 1.0 is a whole core; `cpu_wait` the largest share of the time that one
    of them was ready to run and had no CPU; `pause` the longest time (s) that one was away. `other` and `idle` are per
    cent of the CPUs of the generator's machine that programs other than cockpit took, and nobody; None: not read.
    """

    second: int
    start: float
    end: float
    completed: int = 0
    failed: int = 0
    errors: int = 0
    queued: int = 0
    latency: Histogram = EMPTY
    connections: int = 0
    in_flight: int = 0
    workers: tuple[float, ...] = ()
    lag_p99: float = 0.0
    pause: float = 0.0
    saturated: bool = False
    cpu_wait: float = 0.0
    other: float | None = None
    idle: float | None = None

    @property
    def p50(self) -> float:
        return self.latency.percentile(50)

    @property
    def p99(self) -> float:
        return self.latency.percentile(99)

    @property
    def max(self) -> float:
        return self.latency.max

    @property
    def density(self) -> tuple[int, ...]:
        """Response times counted by LATENCY_EDGES."""
        return tuple(self.latency.between(LATENCY_EDGES))

    @property
    def generator(self) -> float:
        return max(self.workers, default=0.0)

    @property
    def rate(self) -> float:
        """Responses/s over the part of the second that ticks cover."""
        return self.completed / (self.end - self.start) if self.end > self.start else 0.0

    @property
    def stalled(self) -> bool:
        """Whether requests were in flight and none ended, in at least half of the second."""
        return self.end - self.start >= 0.5 and self.in_flight > 0 and not self.completed and not self.errors


class WorkerSecond(msgspec.Struct, frozen=True, kw_only=True):
    """A second of one load worker: `span` seconds that ticks cover, its CPU time and the time it waited for a CPU (s);
    `share` and `wait` are these per second of span. `connections` and `in_flight` as in its newest tick."""

    span: float = 0.0
    cpu: float = 0.0
    waited: float = 0.0
    share: float = 0.0
    wait: float = 0.0
    connections: int = 0
    in_flight: int = 0


class Filling(msgspec.Struct, frozen=True, kw_only=True):
    """A second whose ticks still arrive; `span` and `saturated` are worker-seconds. `other` and `idle` as in
    LoadSecond."""

    second: int
    start: float
    end: float
    counts: Counts
    workers: Mapping[int, WorkerSecond] = MappingProxyType({})
    span: float = 0.0
    saturated: float = 0.0
    pause: float = 0.0
    other: float | None = None
    idle: float | None = None


# There may be hundreds of workers.
_CONNECTIONS, _IN_FLIGHT, _SHARE, _WAIT = map(attrgetter, ("connections", "in_flight", "share", "wait"))


def load_second(filling: Filling) -> LoadSecond:
    """Return the metrics of a second from the ticks that were counted into it."""
    counts, workers = filling.counts, filling.workers.values()
    return LoadSecond(
        second=filling.second,
        latency=counts.latency,
        start=filling.start,
        end=filling.end,
        completed=counts.completed,
        failed=counts.failed,
        errors=sum(counts.errors.values()),
        queued=counts.queued,
        connections=sum(map(_CONNECTIONS, workers)),
        in_flight=sum(map(_IN_FLIGHT, workers)),
        workers=tuple(map(_SHARE, map(filling.workers.__getitem__, sorted(filling.workers)))),
        lag_p99=counts.lag.percentile(99),
        pause=filling.pause,
        saturated=filling.saturated > filling.span / 2,
        cpu_wait=max(map(_WAIT, workers), default=0.0),
        other=filling.other,
        idle=filling.idle,
    )
