"""Counts since the last tick, cheap enough not to slow down the load.

Latencies (s) are appended to lists, which are turned into histograms once per tick.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

from cockpit.load.request_metrics import RequestMetrics, add_counts, histogram
from cockpit.model.histogram import COARSER, EMPTY, Histogram
from cockpit.model.tick import Tick

_SCHEDSTAT = Path("/proc/thread-self/schedstat")


class Tally:
    """Counts of one worker; `per_request` are the metrics of each request of the plan.

    `close_interval` turns the lists into histograms, `make_tick` returns them as a tick.
    """

    def __init__(self, make_counts: Callable[[], list[RequestMetrics]], *, grouped: bool) -> None:
        """`grouped`: ticks include the metrics of each request, beside the total."""
        self._make_counts = make_counts
        self._grouped = grouped
        self.per_request = make_counts()
        # The metrics of the warm-up after its end.
        self.former: list[RequestMetrics] = []
        self.connects: list[float] = []
        self.full_handshakes, self.resumed_handshakes = HandshakeTally(), HandshakeTally()
        self.lags: list[float] = []
        self.pause = 0.0
        self.abandoned = self.queued = self.unsent = self.dropped = self.reconnects = self.unclosed = 0
        self._sent = 0
        self._connect = self._lag = EMPTY
        self.begin()

    def begin(self) -> None:
        """Start measuring the CPU time and CPU wait of the calling thread."""
        self._cpu = time.process_time()
        self._last_response = time.monotonic()
        self._run_queue = RunQueue()

    def renew(self) -> None:
        """End the warm-up: count only requests that start from now on."""
        for counts in self.per_request:
            counts.live = False
        self.former, self.per_request = self.per_request, self._make_counts()

    def close_interval(self) -> None:
        """Add the lists to the histograms that are not taken yet."""
        for counts in self.per_request:
            counts.flush_latencies()
        self._connect += histogram(self.connects)
        self.full_handshakes.flush()
        self.resumed_handshakes.flush()
        self._lag += histogram(self.lags)

    def make_tick(self, now: float, sent: int, started: Collection[float], **fields: Any) -> Tick:
        """Return all closed intervals as one tick that ends at `now` (s of time.monotonic()), and reset.

        `sent`: requests since the start of the worker. `started`: start times of the requests in flight. `fields`:
        those of the tick that are not counted here.
        """
        cpu = time.process_time()
        per_request = self.per_request
        if len(per_request) == 1:
            # Connections count sent requests only if the plan has several.
            per_request[0].sent = sent - self._sent
        statuses: dict[int, int] = {}
        errors: dict[str, int] = {}
        unexpected: dict[str, int] = {}
        for counts in per_request:
            add_counts(statuses, counts.statuses)
            add_counts(errors, counts.errors)
            add_counts(unexpected, counts.unexpected)
        if statuses:
            self._last_response = now
        tick = Tick(
            t=now,
            sent=sent - self._sent,
            completed=sum(statuses.values()),
            abandoned=self.abandoned,
            statuses=statuses,
            errors=errors,
            bytes_received=sum(counts.received for counts in per_request),
            bytes_sent=sum(counts.sent_bytes for counts in per_request),
            body_bytes=sum(counts.body for counts in per_request),
            in_flight=len(started),
            oldest=max(0.0, now - min(started, default=now)),
            silence=max(0.0, now - self._last_response),
            cpu=cpu - self._cpu,
            cpu_wait=self._run_queue.since_last(),
            pause=self.pause,
            queued=self.queued,
            unsent=self.unsent,
            dropped=self.dropped,
            retries=sum(counts.retries for counts in per_request),
            reconnects=self.reconnects,
            unclosed=self.unclosed,
            redirect=next((counts.heads.location for counts in per_request if counts.heads.location), ""),
            length_mismatches=sum(counts.length_mismatches for counts in per_request),
            unexpected=unexpected,
            groups={counts.name: counts.group() for counts in per_request} if self._grouped else {},
            connect=self._connect,
            full_handshakes=self.full_handshakes.counts,
            resumed_handshakes=self.resumed_handshakes.counts,
            tls=self.full_handshakes.durations,
            tls_resumed=self.resumed_handshakes.durations,
            first_byte=Histogram.merged(counts.first_byte for counts in per_request),
            service=Histogram.merged(counts.service for counts in per_request),
            response=Histogram.merged(counts.response for counts in per_request),
            head_of_line=Histogram.merged(counts.head_of_line for counts in per_request),
            lag=self._lag.coarse(COARSER),
            **fields,
        )
        self._sent, self._cpu = sent, cpu
        self.abandoned = self.queued = self.unsent = self.dropped = self.reconnects = self.unclosed = 0
        self.pause = 0.0
        self._connect = self._lag = EMPTY
        self.full_handshakes.clear()
        self.resumed_handshakes.clear()
        for counts in per_request:
            counts.clear()
        return tick


class HandshakeTally:
    """Full or resumed TLS handshakes: their number by TlsParameters.key, and their durations."""

    def __init__(self) -> None:
        self._seconds: list[float] = []
        self.clear()

    def clear(self) -> None:
        """Forget the counts and the flushed durations."""
        self.counts: dict[str, int] = {}
        self.durations = EMPTY

    def add(self, key: str, seconds: float) -> None:
        self.counts[key] = self.counts.get(key, 0) + 1
        self._seconds.append(seconds)

    def flush(self) -> None:
        self.durations += histogram(self._seconds)


class RunQueue:
    """CPU wait: time that this thread was runnable but not running; 0 except on Linux."""

    def __init__(self) -> None:
        self._last = _total_wait() or 0

    def since_last(self) -> float:
        """Return the CPU wait (s) since the last call."""
        now = _total_wait()
        if now is None:
            # All file descriptors may be in use; the next call includes this interval.
            return 0.0
        last, self._last = self._last, now
        return (now - last) / 1e9


def _total_wait() -> int | None:
    """Return the total CPU wait of this thread (ns); None if the kernel does not provide it."""
    try:
        # Fields: time on a CPU (ns), time on a run queue (ns), number of time slices.
        return int(_SCHEDSTAT.read_bytes().split()[1])
    except (OSError, IndexError):
        return None
