"""Counts since the last tick, cheap enough not to slow the load.

Latencies (seconds) are appended to plain lists and turned into histograms once a tick.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from cockpit.load.request_metrics import RequestMetrics, add_counts, histogram
from cockpit.load.run_queue import RunQueue
from cockpit.model.events import Tick
from cockpit.model.histogram import COARSER, EMPTY, Histogram


class Tally:
    """Counts of one worker: per request in its lanes, the others here.

    `close_interval` settles the lists, `take` makes a tick of them.
    """

    def __init__(self, make_lanes: Callable[[], list[RequestMetrics]], *, grouped: bool) -> None:
        """`grouped`: ticks name the metrics of each lane beside the total."""
        self._make_lanes = make_lanes
        self._grouped = grouped
        self.lanes = make_lanes()
        # Lanes of the warm-up, once it is over.
        self.former: list[RequestMetrics] = []
        self.connects: list[float] = []
        self.handshakes: list[float] = []
        self.lags: list[float] = []
        self.pause = 0.0
        self.abandoned = self.held_back = self.unsent = self.dropped = self.reconnects = self.unclosed = 0
        self._sent = 0
        self._connect = self._tls = self._lag = EMPTY
        self.begin()

    def begin(self) -> None:
        """The load begins, in the calling thread: its earlier CPU and waiting time are not of the run."""
        self._cpu = time.process_time()
        self._queue = RunQueue()

    def renew(self) -> None:
        """Count requests from now on; no longer those begun before."""
        for lane in self.lanes:
            lane.live = False
        self.former, self.lanes = self.lanes, self._make_lanes()

    def close_interval(self) -> None:
        """Turn the lists into histograms, added to those not yet taken."""
        for lane in self.lanes:
            lane.settle()
        self._connect += histogram(self.connects)
        self._tls += histogram(self.handshakes)
        self._lag += histogram(self.lags)

    def take(
        self, *, run: int, worker: int, start: float, now: float, sent: int, connections: int, stage: int, warmup: bool
    ) -> Tick:
        """Return all closed intervals as one tick, from `start` to `now` (s of time.monotonic()), and reset.

        `sent` is the number of requests since the worker began; `connections` those open now.
        """
        cpu = time.process_time()
        lanes = self.lanes
        if len(lanes) == 1:
            # All requests are its own; connections are counted per lane only if there are several.
            lanes[0].sent = sent - self._sent
        statuses: dict[int, int] = {}
        errors: dict[str, int] = {}
        unexpected: dict[str, int] = {}
        for lane in lanes:
            add_counts(statuses, lane.statuses)
            add_counts(errors, lane.errors)
            add_counts(unexpected, lane.unexpected)
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
            bytes_received=sum(lane.received for lane in lanes),
            bytes_sent=sum(lane.sent_bytes for lane in lanes),
            body_bytes=sum(lane.body for lane in lanes),
            connections=connections,
            cpu=cpu - self._cpu,
            cpu_wait=self._queue.since_last(),
            pause=self.pause,
            held_back=self.held_back,
            unsent=self.unsent,
            dropped=self.dropped,
            retries=sum(lane.retries for lane in lanes),
            reconnects=self.reconnects,
            unclosed=self.unclosed,
            redirect=next((lane.heads.location for lane in lanes if lane.heads.location), ""),
            varied=sum(lane.varied for lane in lanes),
            unexpected=unexpected,
            groups={lane.name: lane.group() for lane in lanes} if self._grouped else {},
            stage=stage,
            warmup=warmup,
            connect=self._connect,
            tls=self._tls,
            first_byte=Histogram.merged(lane.first_byte for lane in lanes),
            service=Histogram.merged(lane.service for lane in lanes),
            response=Histogram.merged(lane.response for lane in lanes),
            lag=self._lag.coarse(COARSER),
        )
        self._sent, self._cpu = sent, cpu
        self.abandoned = self.held_back = self.unsent = self.dropped = self.reconnects = self.unclosed = 0
        self.pause = 0.0
        self._connect = self._tls = self._lag = EMPTY
        for lane in lanes:
            lane.clear()
        return tick
