"""Metrics of load per second: open seconds, to which ticks are added, and seconds for charts, windows and verdicts."""

from __future__ import annotations

from collections.abc import Mapping
from operator import attrgetter
from types import MappingProxyType
from typing import NamedTuple

import msgspec

from cockpit.model.counts import Counts, Group
from cockpit.model.histogram import EMPTY, Histogram

# Bucket edges (ns) of LoadSecond.density, for heat maps: eight per decade from 1 µs to 100 s.
LATENCY_EDGES = tuple(round(1000 * 10 ** (step / 8)) for step in range(8 * 8 + 1))


class VariantSecond(msgspec.Struct, frozen=True, kw_only=True):
    """One second of a variant of a duet; fields as in LoadSecond."""

    completed: int = 0
    failed: int = 0
    errors: int = 0
    latency: Histogram = EMPTY


class LogSecond(NamedTuple):
    """The requests in one access log in one second; fields as in LoadSecond, but `unread` in seconds."""

    completed: int
    failed: int
    unread: float = 0.0


class LoadSecond(msgspec.Struct, frozen=True, kw_only=True):
    """One second of load. `second`: session time rounded down; `start` to `end`: the part covered by ticks.

    `latency`: response time (service time under closed load) in coarse buckets, so that seconds can be merged into any
    window; `p50`, `p99` and `max` are computed from it. `failed`: as in Counts; `errors`: failed requests without a
    complete response; `full_handshakes` and `resumed_handshakes`: of TLS. `saturated`: the generator was the bottleneck
    for most of the second. `in_flight`: requests without a complete response at its end. `workers`: CPU of each worker
    by number, 1.0 is a whole core; `cpu_wait`: largest share of the time in which a worker was runnable and waited for
    a CPU; `pause`: longest time (s) between two iterations of a worker's event loop. `other` and `idle`: use of the
    generator machine's CPUs by programs other than cockpit, and idle time, in per cent; None: not read. `variants`: its
    parts in a duet, else (). `logs`: its parts by access log of users' traffic (its place in
    the plan) if there are several, else empty. `unread`: share of the time in
    which access logs were not read, 1 if none was.
    """

    second: int
    start: float
    end: float
    completed: int = 0
    failed: int = 0
    errors: int = 0
    queued: int = 0
    full_handshakes: int = 0
    resumed_handshakes: int = 0
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
    variants: tuple[VariantSecond, ...] = ()
    logs: Mapping[int, LogSecond] = MappingProxyType({})
    unread: float = 0.0

    def part_of_log(self, at: int) -> LoadSecond:
        """Return the requests in one access log of users' traffic, without latencies."""
        length = self.end - self.start
        own = self.logs.get(at, LogSecond(0, 0, length))
        return msgspec.structs.replace(
            self,
            completed=own.completed,
            failed=own.failed,
            errors=0,
            latency=EMPTY,
            logs={},
            unread=round(own.unread / length, 4) if length else 0.0,
        )

    def part(self, at: int) -> LoadSecond:
        """Return the second of one variant of a duet; metrics of the generator are those of both."""
        own = self.variants[at]
        return msgspec.structs.replace(
            self, completed=own.completed, failed=own.failed, errors=own.errors, latency=own.latency, variants=()
        )

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
        """Number of response times between each two LATENCY_EDGES."""
        return tuple(self.latency.between(LATENCY_EDGES))

    @property
    def generator(self) -> float:
        return max(self.workers, default=0.0)

    @property
    def rate(self) -> float:
        """Responses/s over the part of the second that ticks cover."""
        return self.per_s(self.completed)

    def per_s(self, count: int) -> float:
        """Return a count of this second per second of its covered part."""
        return count / (self.end - self.start) if self.end > self.start else 0.0

    @property
    def stalled(self) -> bool:
        """Whether requests were in flight and none ended, in at least half of the second."""
        return self.end - self.start >= 0.5 and self.in_flight > 0 and not self.completed and not self.errors


class WorkerSecond(msgspec.Struct, frozen=True, kw_only=True):
    """One second of a load worker. `span`: seconds covered by ticks; `cpu`: CPU time (s); `waited`: time it waited for
    a CPU (s); `share` and `wait`: both per second of span. `connections` and `in_flight`: as in its newest tick.
    `log`: requests in its access log of users' traffic, else None."""

    span: float = 0.0
    cpu: float = 0.0
    waited: float = 0.0
    share: float = 0.0
    wait: float = 0.0
    connections: int = 0
    in_flight: int = 0
    log: LogSecond | None = None


class OpenSecond(msgspec.Struct, frozen=True, kw_only=True):
    """An open second, whose ticks still arrive; `span` and `saturated` are worker-seconds, `other` and `idle` as in
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


# Getters are faster than loops: there may be hundreds of workers.
_CONNECTIONS, _IN_FLIGHT, _SHARE, _WAIT = map(attrgetter, ("connections", "in_flight", "share", "wait"))


def load_second(filling: OpenSecond) -> LoadSecond:
    """Return the metrics of a second from its ticks so far."""
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
        full_handshakes=sum(counts.full_handshakes.values()),
        resumed_handshakes=sum(counts.resumed_handshakes.values()),
        connections=sum(map(_CONNECTIONS, workers)),
        in_flight=sum(map(_IN_FLIGHT, workers)),
        workers=tuple(map(_SHARE, map(filling.workers.__getitem__, sorted(filling.workers)))),
        lag_p99=counts.lag.percentile(99),
        pause=filling.pause,
        saturated=filling.saturated > filling.span / 2,
        cpu_wait=max(map(_WAIT, workers), default=0.0),
        other=filling.other,
        idle=filling.idle,
        variants=tuple(map(_variant_second, counts.groups.values())),
        logs={at: worker.log for at, worker in filling.workers.items() if worker.log},
        unread=round(counts.unread / filling.span, 4) if filling.span else 0.0,
    )


def _variant_second(group: Group) -> VariantSecond:
    """Return the metrics of a variant; statuses are those that count as failed."""
    return VariantSecond(
        completed=group.completed,
        failed=sum(group.errors.values()) + sum(group.unexpected.values()) + sum(group.statuses.values()),
        errors=sum(group.errors.values()),
        latency=group.response if group.response.count else group.service,
    )
