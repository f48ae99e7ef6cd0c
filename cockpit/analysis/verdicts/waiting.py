"""Run-queue wait of the server's processes: how much of a latency it can explain at most. Pure."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

import numpy as np
from msgspec.structs import replace

from cockpit.analysis.blocks import LatencyBlocks
from cockpit.analysis.intervals import Floats
from cockpit.analysis.verdicts.outcome import OtherLoad
from cockpit.analysis.windows import READ_WITHIN, Window, Windows
from cockpit.metrics.catalogue import percent_of
from cockpit.model.host.state import HostPoint

# Delays that are tried, as shares of the percentile.
_DELAYS = np.linspace(0.005, 0.995, 199)
# A process that is ready to run for more than this share of a second may have a queue at its end.
_QUEUES = 0.8


def with_delays(load: OtherLoad, before: Windows, after: Windows, names: Sequence[str]) -> OtherLoad:
    """Return other load that matters with the factors by which it can have lengthened these latencies."""
    if load.slowed is None or not any(point.wait is not None for point in _points((*before, *after), load.host)):
        return load
    percents = {name: percent for name in names if (percent := percent_of(name)) is not None}
    factors = {
        name: tuple(delay_factor(side, load.host, percent) for side in (before, after))
        for name, percent in percents.items()
    }
    return replace(load, delayed=factors)


def _points(windows: Windows, host: str) -> list[HostPoint]:
    return [point for window in windows for point in window.hosts.get(host, ())]


def delay_factor(windows: Windows, host: str, percent: float) -> float | None:
    """Return the largest factor by which waiting for a CPU can have lengthened a percentile of the latency; None:
    unbounded.

    Without the waits each request would have been quicker by a delay whose mean is known for each second. At most
    the share m/d of the requests of a second was delayed by more than d (Markov's inequality). So the percentile
    without waits is at least that of as many fewer requests, minus d, for each d.
    """
    seconds = [second for window in windows for second in window.seconds]
    shares = np.concatenate([_delay_shares(window, host) for window in windows])
    spread = LatencyBlocks.of([second.latency for second in seconds])
    counts = spread.counts.sum(axis=1)
    count = float(counts.sum())
    if not count:
        return None
    ranks, ends = np.cumsum(spread.counts.sum(axis=0)) / count, (spread.lower + spread.width) / 1e9
    value = float(np.interp(percent / 100, ranks, ends))
    delays = _DELAYS * value
    means = shares * np.array([second.latency.mean for second in seconds])
    delayed = (counts * np.minimum(1.0, means / delays[:, None])).sum(axis=1) / count
    least = float((np.interp(percent / 100 - delayed, ranks, ends, left=0.0) - delays).max())
    return value / least if least > 0 else None


def _delay_shares(window: Window, host: str) -> Floats:
    """Return the share of the mean latency of each second that waits of the server and of the generator explain at
    most; 1 if they are unknown.

    A process that waits delays all its requests. Under closed load other programs delay them by no more than the CPU
    that they take. Under open load arrivals continue: without the share w of waits, the queue of a process that
    is busy for the share b of the time shrinks by (1 − b)/(1 − b(1 − w)), and a queue outlasts the waits.
    """
    points = window.hosts.get(host, ())
    times = [point.t for point in points]
    shares: list[float] = []
    queued = 0.0
    for second in window.seconds:
        at = bisect_left(times, (second.start + second.end) / 2)
        point = points[at] if at < len(points) and times[at] - second.end < READ_WITHIN else None
        if point is None or point.wait is None or point.busiest is None:
            shares.append(1.0)
            continue
        wait, busy = point.wait / 100, point.busiest / 100
        if not window.plan.open:
            shares.append(min(wait, _taken(point)))
            continue
        own = 1 - (1 - wait) * (1 - busy) / (1 - busy * (1 - wait)) if wait else 0.0
        before, queued = queued, max(own, queued if busy > _QUEUES else 0.0)
        shares.append(max(queued, before))
    waits = np.array([second.cpu_wait for second in window.seconds])
    explained: Floats = 1 - (1 - np.array(shares)) * (1 - waits)
    return explained


def _taken(point: HostPoint) -> float:
    """Return the CPU of other programs as a share of that of the server and of these programs."""
    if point.cpu is None or point.other is None:
        return 1.0
    used = 100 - point.cpu.idle - point.cpu.iowait
    return min(1.0, max(0.0, point.other / used)) if used > 0 else 1.0
