"""Counts since the last tick, cheap enough not to slow the load.

Latencies (seconds) are appended to plain lists and turned into histograms once a tick.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from pathlib import Path

from cockpit.load.request_metrics import RequestMetrics, add_counts, histogram
from cockpit.model.events import Tick
from cockpit.model.histogram import COARSER, EMPTY, Histogram

_SCHEDSTAT = Path("/proc/thread-self/schedstat")


class Tally:
    """Counts of one worker, of which those in `per_request` are by request.

    `close_interval` settles the lists, `take` makes a tick of them.
    """

    def __init__(self, make_counts: Callable[[], list[RequestMetrics]], *, grouped: bool) -> None:
        """`grouped`: ticks have the metrics of each request beside the total."""
        self._make_counts = make_counts
        self._grouped = grouped
        self.per_request = make_counts()
        # The metrics of the warm-up, once it is over.
        self.former: list[RequestMetrics] = []
        self.connects: list[float] = []
        self.handshakes: list[float] = []
        self.lags: list[float] = []
        self.pause = 0.0
        self.abandoned = self.queued = self.unsent = self.dropped = self.reconnects = self.unclosed = 0
        self._sent = 0
        self._connect = self._tls = self._lag = EMPTY
        self.begin()

    def begin(self) -> None:
        """The load begins, in the calling thread: its earlier CPU and waiting time are not of the run."""
        self._cpu = time.process_time()
        self._answered = time.monotonic()
        self._queue = RunQueue()

    def renew(self) -> None:
        """Count requests from now on; no longer those begun before."""
        for counts in self.per_request:
            counts.live = False
        self.former, self.per_request = self.per_request, self._make_counts()

    def close_interval(self) -> None:
        """Turn the lists into histograms, added to those not yet taken."""
        for counts in self.per_request:
            counts.settle()
        self._connect += histogram(self.connects)
        self._tls += histogram(self.handshakes)
        self._lag += histogram(self.lags)

    def take(
        self,
        *,
        run: int,
        worker: int,
        start: float,
        now: float,
        sent: int,
        connections: int,
        started: Collection[float],
        stage: int,
        warmup: bool,
    ) -> Tick:
        """Return all closed intervals as one tick, from `start` to `now` (s of time.monotonic()), and reset.

        `sent` is the number of requests since the worker began; `connections` those open now; `started` the instants
        at which the requests in flight began.
        """
        cpu = time.process_time()
        per_request = self.per_request
        if len(per_request) == 1:
            # All requests are its own; connections count them only if there are several.
            per_request[0].sent = sent - self._sent
        statuses: dict[int, int] = {}
        errors: dict[str, int] = {}
        unexpected: dict[str, int] = {}
        for counts in per_request:
            add_counts(statuses, counts.statuses)
            add_counts(errors, counts.errors)
            add_counts(unexpected, counts.unexpected)
        if statuses:
            self._answered = now
        tick = Tick(
            t=now,
            run=run,
            worker=worker,
            start=start,
            sent=sent - self._sent,
            completed=sum(statuses.values()),
            abandoned=self.abandoned,
            statuses=statuses,
            errors=errors,
            bytes_received=sum(counts.received for counts in per_request),
            bytes_sent=sum(counts.sent_bytes for counts in per_request),
            body_bytes=sum(counts.body for counts in per_request),
            connections=connections,
            in_flight=len(started),
            oldest=max(0.0, now - min(started, default=now)),
            silence=max(0.0, now - self._answered),
            cpu=cpu - self._cpu,
            cpu_wait=self._queue.since_last(),
            pause=self.pause,
            queued=self.queued,
            unsent=self.unsent,
            dropped=self.dropped,
            retries=sum(counts.retries for counts in per_request),
            reconnects=self.reconnects,
            unclosed=self.unclosed,
            redirect=next((counts.heads.location for counts in per_request if counts.heads.location), ""),
            varied=sum(counts.varied for counts in per_request),
            unexpected=unexpected,
            groups={counts.name: counts.group() for counts in per_request} if self._grouped else {},
            stage=stage,
            warmup=warmup,
            connect=self._connect,
            tls=self._tls,
            first_byte=Histogram.merged(counts.first_byte for counts in per_request),
            service=Histogram.merged(counts.service for counts in per_request),
            response=Histogram.merged(counts.response for counts in per_request),
            lag=self._lag.coarse(COARSER),
        )
        self._sent, self._cpu = sent, cpu
        self.abandoned = self.queued = self.unsent = self.dropped = self.reconnects = self.unclosed = 0
        self.pause = 0.0
        self._connect = self._tls = self._lag = EMPTY
        for counts in per_request:
            counts.clear()
        return tick


class RunQueue:
    """Time that this thread was ready to run while others had the CPU; 0 except on Linux."""

    def __init__(self) -> None:
        self._last = _waited() or 0

    def since_last(self) -> float:
        now = _waited()
        if now is None:
            # Without a file descriptor to spare it cannot be read; the next asking has it all.
            return 0.0
        last, self._last = self._last, now
        return (now - last) / 1e9


def _waited() -> int | None:
    """Return the nanoseconds that this thread has waited on a run queue; None if the kernel does not count them."""
    try:
        # Time on a CPU, time waiting for a CPU, and how often.
        return int(_SCHEDSTAT.read_bytes().split()[1])
    except (OSError, IndexError):
        return None
