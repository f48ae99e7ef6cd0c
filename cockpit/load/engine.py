"""The event loop of a worker: connections, timeouts, ticks. Subclasses decide when requests start."""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable
from functools import partial
from math import inf
from time import monotonic
from typing import Any, Literal, NamedTuple

from cockpit.load.chain import ChainOrder
from cockpit.load.http.closing import Closing
from cockpit.load.http.dialer import Dialer
from cockpit.load.http.load_socket import Handler
from cockpit.load.http.protocol import Assignment, share
from cockpit.load.log_share import LoggedOrder
from cockpit.load.poller import Poll, Poller
from cockpit.load.ramp import Ramp, constant
from cockpit.load.request_metrics import RequestMetrics, request_metrics_of
from cockpit.load.request_order import RequestOrder
from cockpit.load.schedule import Phase, phases_of
from cockpit.load.slots import RequestSlot
from cockpit.load.tally import Tally
from cockpit.model.tick import Tick

# Precision of timeouts (s); see `timeout_precision`.
_TIMEOUT_PRECISION = 0.001


class Hooks(NamedTuple):
    """Functions that the engine calls: `on_tick` once per tick, which may leave the metrics for the next tick; `on_cut`
    at the end of a stage or of the warm-up, which must call `make_tick`."""

    on_tick: Callable[[], None]
    on_cut: Callable[[], None]


class Engine:
    """Runs one worker's share of a plan, in one thread. `due` is the time at which `housekeep` has to be called, `over`
    whether the load has ended."""

    def __init__(self, assignment: Assignment, poller: Poller, hooks: Hooks) -> None:
        plan = assignment.plan
        self.assignment = assignment
        self.poller = poller
        self.handlers: dict[int, Handler] = {}
        self.order = order_of(assignment)
        self.dialer = Dialer(assignment, self.order.largest)
        self.tally = Tally(partial(request_metrics_of, plan), grouped=bool(plan.mix))
        self.closing = Closing()
        self.connections = 0
        unlimited = plan.keepalive or not plan.http2
        self.requests_per_connection = plan.requests_per_connection or (sys.maxsize if unlimited else 1)
        self.exhausted = False
        self.reason: Literal["completed", "stopped"] = "completed"
        self._hooks = hooks
        self._issued = 0
        # The share of the load: the index of this worker among the remaining ones, and their number.
        self._place, self._workers = assignment.worker, assignment.workers
        self._quota = sys.maxsize if assignment.requests is None else assignment.requests
        # Maximum number of requests: by the plan (unlimited in the warm-up), and now (unlimited in an extension).
        self._planned_limit = self._limit = sys.maxsize if plan.warmup > 0 else self._quota
        self._phases: deque[Phase] = deque()
        self._load = constant(0.0)
        self._phase = Phase(0.0, 0, False, self._load)
        self.over = self._quota == 0
        self._started = self._next_phase = self._next_tick = self._end_time = self._next_expiry = self.due = 0.0
        self._planned_end = 0.0
        # End of the extension of the run; infinite without one.
        self._extended = inf

    def run(self, at: float) -> None:
        """Run the load from `at` (s of time.monotonic()) until the end of the plan."""
        self.begin(at)
        now = monotonic()
        poll, handlers, tally = self.waits(), self.handlers, self.tally
        while not self.over:
            wait = self.due - now
            if wait < 0:
                wait = 0.0
            events = poll(wait)
            before, now = now, monotonic()
            if now - before - wait > tally.pause:
                tally.pause = now - before - wait
            for fd, mask in events:
                handlers[fd](mask, now)
            if now >= self.due:
                self.housekeep(now)
        self.finish()

    def begin(self, at: float) -> None:
        """Start the load at `at` (s of time.monotonic())."""
        plan = self.assignment.plan
        phases, self._planned_end = phases_of(plan, at)
        self._end_time = self._planned_end
        self._phases.extend(phases)
        self._started = at
        self._next_tick = at + plan.tick
        self._next_expiry = at + plan.timeout
        self._enter(self._phases.popleft())
        self.tally.begin()
        self.due = monotonic()

    def finish(self) -> None:
        """Close all connections at the end of the load."""
        self._close_all()
        self.tally.close_interval()

    def stop(self) -> None:
        """Stop the run after the current events."""
        self.reason = "stopped"
        self._phases.clear()
        self._end_time = self.due = 0.0
        self._next_phase = inf

    def adjust(self, load: Ramp) -> None:
        """Change the load of all workers together: connections, or arrivals/s."""
        self._follow(monotonic(), load)
        self.due = 0.0

    def reassign(self, place: int, workers: int, more: int) -> None:
        """Take the share of worker `place` of `workers` from now on, and `more` further requests."""
        self._place, self._workers = place, workers
        if more and self.reason != "stopped":
            self._quota += more
            if self._planned_limit < sys.maxsize:
                self._planned_limit += more
            if self._extended == inf:
                self._limit_to(self._planned_limit)
        self.adjust(self._load)

    def own(self, total: int) -> int:
        """Return this worker's part of a total that all remaining workers share evenly."""
        return share(total, [1] * self._workers)[self._place]

    def extend(self, until: float) -> None:
        """Delay the planned end, by time or by count, until `until` (s of time.monotonic()); replaces an earlier delay.
        No effect once the run is ending."""
        if self.reason == "stopped" or self.exhausted:
            return
        self._extended, self._end_time = until, max(self._planned_end, until)
        self._limit_to(sys.maxsize)
        self.due = 0.0

    def make_tick(self, start: float, now: float) -> Tick:
        """Return the counts since the last tick, as a tick from `start` to `now`."""
        return self.tally.make_tick(
            now,
            self._issued,
            self._started_in_flight(),
            run=self.assignment.run,
            worker=self.assignment.worker,
            start=start,
            connections=self.connections,
            stage=self._phase.stage,
            warmup=self._phase.warmup,
        )

    # --- called by connections ---

    def next(self, connection: Any) -> None:
        """Start the next request on a free connection, or none."""
        raise NotImplementedError

    def not_connected(self, connection: Any) -> None:
        """Like `next`, after a failed connect."""
        raise NotImplementedError

    def awaiting_close(self, connection: Any) -> None:
        """Note that the request is over, and the connection waits for the server to close; `next` follows."""

    def lost(self, connection: Any) -> None:
        """Note that the server closed the connection between two requests; the next request opens a new socket."""

    def _carry_next(self, connection: RequestSlot, per_request: list[RequestMetrics]) -> None:
        """Assign the next request of a plan with several requests to a connection, and count it as sent."""
        number, request = self.order.next_request(connection)
        counts = per_request[number]
        counts.sent += 1
        connection.carry(counts, request)

    # --- called by the clock ---

    def housekeep(self, now: float) -> None:
        """Do what is due at `now`."""
        while now >= self._next_phase:
            self._change_phase(self._phases.popleft())
        if now >= self._extended:
            self._extended = inf
            self._limit_to(self._planned_limit)
        if now >= self._end_time:
            self._catch_up(self._end_time)
            self.over = True
            return
        due = self._work(now)
        tick_due = now >= self._next_tick
        if tick_due or now >= self._next_expiry:
            self._next_expiry = self._expire(now)
        if tick_due:
            self.tally.lags.append(now - self._next_tick)
            self.tally.close_interval()
            self._hooks.on_tick()
            interval = self.assignment.plan.tick
            self._next_tick += interval * max(1.0, (now - self._next_tick) // interval + 1)
        self.due = min(self._next_tick, self._next_expiry, self._next_phase, self._end_time, self._extended, due)

    def _change_phase(self, phase: Phase) -> None:
        """Change to the next phase: end the interval, so that counts belong to one phase each."""
        self._catch_up(phase.start)
        counting_begins = self._phase.warmup and not phase.warmup
        if counting_begins:
            self._end_warmup()
        self.tally.close_interval()
        self._hooks.on_cut()
        if counting_begins:
            self.tally.renew()
            self._planned_limit = self._quota + self._issued if self._quota < sys.maxsize else sys.maxsize
            if self._extended == inf:
                self._limit = self._planned_limit
        self._enter(phase)
        if counting_begins:
            self._start_counting()

    def _enter(self, phase: Phase) -> None:
        # The end of the warm-up does not change the load, which the user may have adjusted.
        sets_load = phase.warmup or not self._phase.warmup
        self._phase = phase
        self._next_phase = self._phases[0].start if self._phases else inf
        if sets_load:
            self._follow(phase.start, phase.load)

    def _follow(self, at: float, load: Ramp) -> None:
        self._load = load
        self._set_load(at)

    # --- implemented by subclasses ---

    def waits(self) -> Poll:
        """Return the function that waits for events of this load."""
        return self.poller.poll

    def renew(self) -> None:
        """Close each connection as soon as no request is in flight on it; the next request opens a new one."""
        raise NotImplementedError

    def _set_load(self, at: float) -> None:
        raise NotImplementedError

    def _limit_to(self, limit: int) -> None:
        raise NotImplementedError

    def _work(self, now: float) -> float:
        """Start all due requests; return the due time of the next one."""
        raise NotImplementedError

    def _catch_up(self, until: float) -> None:
        """Start all requests that were due before `until`, a time in the past."""

    def _started_in_flight(self) -> list[float]:
        raise NotImplementedError

    def _end_warmup(self) -> None:
        """Count the requests in flight as abandoned: their results are not counted."""
        self.tally.abandoned += len(self._started_in_flight())

    def _start_counting(self) -> None:
        raise NotImplementedError

    def _expire(self, now: float) -> float:
        """Time out requests and lingering connections; return the time of the next check."""
        raise NotImplementedError

    def _close_all(self) -> None:
        """Close all connections. Requests in flight are abandoned: neither completed nor failed."""
        raise NotImplementedError

    def _abandon(self, connection: RequestSlot) -> None:
        if connection.give_up() and connection.counts.live:
            self.tally.abandoned += 1


def order_of(assignment: Assignment) -> RequestOrder | LoggedOrder | ChainOrder:
    """Return the order of the requests of a worker."""
    if assignment.plan.chained:
        return ChainOrder(assignment.plan)
    if assignment.log is not None:
        return LoggedOrder(assignment.plan, assignment.log)
    return RequestOrder(assignment.plan, assignment.worker, assignment.workers)


def timeout_precision(connections: int) -> float:
    """Return the precision (s) of timeouts with this many connections."""
    return _TIMEOUT_PRECISION * (1 + connections / 1000)
